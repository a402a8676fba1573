// @ts-check
/**
 *   npm run sim:differential                            100,000 commands
 *   npm run sim:differential -- --commands 5000 --seed 3
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { RedisConnection } from "../redis/redis-connection.mjs";
import { startRedis } from "../redis/redis-server.mjs";
import { buildSimulator } from "./build-simulator.mjs";
import { compare } from "./differential-run.mjs";

const { values } = parseArgs({
  options: {
    commands: { type: "string", default: "100000" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});

/** @template Module @param {string} folder @param {string} path @returns {Promise<Module>} */
async function load(folder, path) {
  return await import(pathToFileURL(join(folder, "simulator", path)).href);
}

const folder = buildSimulator();
/** @type {typeof import("../../src/simulator/node/server.ts")} */
const { SimulatedServer, epochMs } = await load(folder, "node/server.js");
/** @type {typeof import("../../src/simulator/node/scripts.ts")} */
const { knownScripts } = await load(folder, "node/scripts.js");
/** @type {typeof import("../../src/simulator/seeded-random.ts")} */
const { SeededRandom } = await load(folder, "seeded-random.js");

// A Unix socket is faster than TCP for so many short commands.
const server = await startRedis({ args: ["--unixsocket", "redis.sock"] });
try {
  const connection = await RedisConnection.open({ path: join(server.dir, "redis.sock") });
  const random = new SeededRandom(`differential ${values.seed}`);
  const plan = { version: "7.0.15", rate: 1, skewMs: Date.now() - epochMs, uptimeMs: 0 };
  const startedMs = performance.now();
  const ports = { realMs: () => performance.now() - startedMs, newRunId: () => random.hex(40) };
  const simulated = new SimulatedServer(plan, ports);
  /** @param {readonly (readonly string[])[]} commands */
  const sendAll = (commands) => connection.sendAll(commands);
  console.log(`seed ${values.seed}`);
  const sides = { simulated, scripts: knownScripts, random, sendAll };
  const { commands, kinds, answers, ways, differences } = await compare(
    sides,
    Number(values.commands),
  );
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  console.log([...kinds].map(([kind, count]) => `${kind} ${count}`).join(", "));
  console.log([...answers].map(([answer, count]) => `${answer} ${count}`).join(", "));
  const taken = [...ways].map(([name, own]) => {
    return `${name} (${[...own].map(([way, count]) => `${way} ${count}`).join(", ")})`;
  });
  console.log(`ways: ${taken.join(", ")}`);
  for (const difference of differences) console.log(difference);
  console.log(`${commands} commands in ${seconds} s, ${differences.length} differences`);
  if (differences.length > 0) process.exitCode = 1;
  connection.close();
} finally {
  await server.stop();
}
