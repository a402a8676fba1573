// @ts-check
/**
 *   npm run sim:differential                            100,000 commands
 *   npm run sim:differential -- --commands 5000 --seed 3
 */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { buildSimulator } from "./build-simulator.mjs";
import { compare } from "./differential-run.mjs";
import { respSender } from "./resp-sender.mjs";

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

const directory = mkdtempSync(join(tmpdir(), "holdfast-differential-"));
const path = join(directory, "redis.sock");
const args = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"];
const server = spawn("redis-server", args, { cwd: directory, stdio: "ignore" });
try {
  const socket = await connected(path);
  const random = new SeededRandom(`differential ${values.seed}`);
  const plan = { version: "7.0.15", rate: 1, skewMs: Date.now() - epochMs, uptimeMs: 0 };
  const startedMs = performance.now();
  const ports = { realMs: () => performance.now() - startedMs, newRunId: () => random.hex(40) };
  const simulated = new SimulatedServer(plan, ports);
  console.log(`seed ${values.seed}`);
  const sides = { simulated, scripts: knownScripts, random, sendAll: respSender(socket) };
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
  socket.destroy();
} finally {
  server.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
}

/** @param {string} path @returns {Promise<import("node:net").Socket>} */
async function connected(path) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await new Promise((resolve, reject) => {
        const socket = connect({ path }, () => resolve(socket));
        socket.once("error", reject);
      });
    } catch (error) {
      if (attempt > 200) throw error;
      await sleep(50);
    }
  }
}
