// @ts-check
/**
 * Measures the cost on a server of the check, inside the granting script, which process runs it.
 *
 *   node bench/verify-cost.mjs
 *
 * Starts one redis-server on a free port, sends cycles of acquire + release over one connection
 * with 64 in flight, and reads the server's own CPU time (INFO cpu) before and after. Variants:
 * the script as sent in the ordinary case, the same with the check, and for comparison the same
 * with a lighter section of INFO instead of the one with the run id.
 */

import { createHash } from "node:crypto";
import { RedisConnection } from "../tools/redis/redis-connection.mjs";
import { startRedis } from "../tools/redis/redis-server.mjs";
import { loadSource } from "./source-modules.mjs";

const scripts = await loadSource("stores/redis/scripts/generated.js");
const { shardOf, wireFormat } = await loadSource("stores/redis/commands/keys.js");

const cycles = 100_000;
const inFlight = 64;
const rounds = 5;

const server = await startRedis();
const client = await RedisConnection.open(server);

/** @param {string} source */
const loaded = async (source) => {
  await client.send("SCRIPT", "LOAD", source);
  return createHash("sha1").update(source).digest("hex");
};
const lighter = scripts.fenced.source
  .replaceAll("'INFO', 'server'", "'INFO', 'replication'")
  .replaceAll("'run_id:'", "'master_replid:'");
const variants = [
  { name: "SET NX PX + compare-and-delete", sha: "", verify: "0" },
  {
    name: "script, verify 0 (EVALSHA, the ordinary case)",
    sha: await loaded(scripts.fenced.source),
    verify: "0",
  },
  {
    name: "script, verify 1 (INFO server each time)",
    sha: await loaded(scripts.fenced.source),
    verify: "1",
  },
  { name: "script, INFO replication each time", sha: await loaded(lighter), verify: "1" },
];
const release = await loaded(scripts.plain.source);

/** @param {{ sha: string, verify: string }} variant */
async function run({ sha, verify }) {
  let next = 0;
  const worker = async () => {
    while (next < cycles) {
      next += 1;
      const key = `r${next % 10_000}`;
      const queue = `holdfast:waiters:${key}`;
      if (sha === "") await client.send("SET", key, "owner", "NX", "PX", "10000");
      else {
        const deployment = [verify, "off", wireFormat, "30000"];
        const shard = String(shardOf(key));
        const own = [`owner-${next}`, String(Date.now() * 1_000), shard];
        const args = [...deployment, "1", "A 1 1", "10000", ...own];
        await client.send("EVALSHA", sha, "3", "holdfast:node", key, queue, ...args);
      }
      const owner = sha === "" ? "owner" : `owner-${next}`;
      await client.send("EVALSHA", release, "2", key, queue, "1", "", "R 1 1", "0", owner);
    }
  };
  const before = await cpuSeconds();
  await Promise.all(Array.from({ length: inFlight }, worker));
  return ((await cpuSeconds()) - before) / cycles;
}

async function cpuSeconds() {
  const info = String(await client.send("INFO", "cpu"));
  const of = (/** @type {string} */ name) =>
    Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1]);
  return of("used_cpu_user") + of("used_cpu_sys");
}

/** @type {Map<string, number[]>} */
const measured = new Map(variants.map(({ name }) => [name, []]));
// Interleaved, so that a busy moment of the machine affects all of them alike.
for (let round = 0; round < rounds; round += 1) {
  for (const variant of variants) {
    await client.send("FLUSHALL");
    measured.get(variant.name)?.push(await run(variant));
  }
}
console.log(`server CPU per cycle of acquire + release, ${cycles} cycles, ${inFlight} in flight,`);
console.log(`median of ${rounds} (least to greatest)`);
for (const [name, values] of measured) {
  const sorted = values.map((value) => value * 1e6).sort((a, b) => a - b);
  const [least, middle, most] = [0, rounds >> 1, rounds - 1].map((at) =>
    (sorted[at] ?? 0).toFixed(1),
  );
  console.log(`${name.padEnd(48)} ${middle} µs (${least} to ${most})`);
}
client.close();
await server.stop();
