// @ts-check
/**
 * Holdfast and another lock library on one key of one server, with and without `foreignGap`: the
 * figures of docs/guides/migrating-from-redlock.md.
 *
 *   npm run build && node bench/mixed-fleets.mjs [seconds of each run, 4]
 *
 * Each side is a process. Holdfast's has eight tasks that always want the lock. The other's has
 * one, which polls every 10 ms and pauses for 10 ms after each section. A section reads a counter
 * on the server and writes it in a second command, so an overlap loses an update.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { redisSemaphore, redlock5 } from "../tools/peers/peer-locks.mjs";
import { startRedis } from "../tools/redis/redis-server.mjs";

const load = createRequire(import.meta.url);
const [, , mode = "4", port = "0", seconds = "0", option = "0"] = process.argv;

/** @typedef {import("../tools/peers/peer-locks.mjs").PeerLocks} PeerLocks */

const terms = { ttlMs: 10_000, waitMs: 60_000, pollMs: 10 };

/** @type {Readonly<Record<string, (client: Redis) => PeerLocks>>} */
const peers = {
  "redlock 5": (client) => redlock5(load("redlock").default, [client], terms),
  "redis-semaphore": (client) => redisSemaphore(load("redis-semaphore"), [client], terms),
};
const prefixes = new Map([["redis-semaphore", "mutex:"]]);

/** @param {Redis} client @returns {Promise<void>} */
async function count(client) {
  await client.set("counter", Number(await client.get("counter")) + 1);
}

/** @param {string} peer @param {number} untilMs @returns {Promise<number>} */
async function holdfastSections(peer, untilMs) {
  const { createLocks } = await import(new URL("../dist/index.js", import.meta.url).href);
  const { redis } = await import(new URL("../dist/stores/redis/index.js", import.meta.url).href);
  const client = new Redis(Number(port));
  const store = redis(client, { prefix: prefixes.get(peer) ?? "", foreignGap: option });
  const locks = createLocks(store, { wait: "forever" });
  let sections = 0;
  const tasks = Array.from({ length: 8 }, async () => {
    while (Date.now() < untilMs) {
      await locks.using("shared", () => count(client));
      sections += 1;
    }
  });
  await Promise.all(tasks);
  await locks.close();
  client.disconnect();
  return sections;
}

/** @param {string} peer @param {number} untilMs @returns {Promise<number>} */
async function peerSections(peer, untilMs) {
  const client = new Redis(Number(port));
  const locks = peers[peer]?.(client);
  if (locks === undefined) throw new Error(`no such library: ${peer}`);
  let sections = 0;
  while (Date.now() < untilMs) {
    const held = await locks.acquire("shared");
    await count(client);
    await locks.release(held);
    sections += 1;
    await sleep(10);
  }
  client.disconnect();
  return sections;
}

/** @param {readonly string[]} args @returns {Promise<number>} */
async function sectionsOf(args) {
  const child = fork(fileURLToPath(import.meta.url), [...args]);
  const [sections] = /** @type {[number]} */ (await once(child, "message"));
  await once(child, "exit");
  return sections;
}

/** @param {string} peer @param {string} gap */
async function run(peer, gap) {
  const server = await startRedis();
  const client = new Redis(server.port);
  const rest = [String(server.port), mode];
  const [ours, theirs] = await Promise.all([
    sectionsOf([`holdfast:${peer}`, ...rest, gap]),
    sectionsOf([peer, ...rest]),
  ]);
  const lost = ours + theirs - Number(await client.get("counter"));
  client.disconnect();
  await server.stop();
  console.log(`| ${peer} | ${gap} | ${ours.toLocaleString("en")} | ${theirs} | ${lost} |`);
}

if (port === "0") {
  console.log("| beside | `foreignGap` | sections of Holdfast | of the other | lost updates |");
  console.log("| --- | --- | --- | --- | --- |");
  for (const peer of Object.keys(peers)) {
    for (const gap of ["0ms", "5ms", "20ms"]) await run(peer, gap);
  }
} else {
  const untilMs = Date.now() + Number(seconds) * 1_000;
  const ours = mode.startsWith("holdfast:");
  const peer = mode.replace("holdfast:", "");
  process.send?.(await (ours ? holdfastSections(peer, untilMs) : peerSections(peer, untilMs)));
  process.disconnect();
}
