// @ts-check
/**
 * Measures the cost of many locks: the figures of docs/operate/scaling.md.
 *
 *   node --expose-gc bench/groups.mjs [folder of the built package] [part] [leases]
 *
 * The default folder is dist beside this one. Parts, by default all of them:
 *   throughput   cycles of acquire + release on 1, 2 and 4 groups of 3 servers
 *   limited      the same with at most 500 commands a second for each server, so that the servers
 *                are the limit and not this machine
 *   across       the same for two resources in one group, and in two
 *   held         memory per held lease, here and on each server, and the cost of a renewal
 *   connections  memory per idle connection on a server
 *
 * Everything runs on this machine. If client and servers share few processors, they limit one
 * another, and more groups cannot be faster. So the processor time of each side is printed as
 * well.
 */

import { cpus } from "node:os";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RedisConnection } from "../tools/redis/redis-connection.mjs";
import { startRedis, startRedisServers } from "../tools/redis/redis-server.mjs";
import { loadSource } from "./source-modules.mjs";

const folder = resolve(process.argv[2] ?? fileURLToPath(new URL("../dist", import.meta.url)));
const part = process.argv[3] ?? "all";
const heldCount = Number(process.argv[4] ?? 100_000);
const load = (/** @type {string} */ path) => import(pathToFileURL(resolve(folder, path)).href);
const { createLocks } = await load("index.js");
const { redlockGroups } = await load("stores/redis/index.js");

const nodesPerGroup = 3;
const cycles = 20_000;
const rounds = 5;

/** @typedef {RedisConnection} Client */

/** @param {readonly Client[]} clients @param {number} [perSecondMax] commands of each of them */
const connectionsOf = (clients, perSecondMax = Infinity) =>
  clients.map((client) => {
    const turns = new Turns(perSecondMax);
    return {
      library: "bench",
      topology: "standalone",
      send: async (/** @type {string} */ _key, /** @type {string[]} */ command) => {
        if (perSecondMax < Infinity) await turns.next();
        return await client.send(...command);
      },
    };
  });

/** Lets a limited number of calls pass per second, in order of arrival. */
class Turns {
  /** @param {number} perSecondMax */
  constructor(perSecondMax) {
    this.perMs = perSecondMax / 1_000;
    this.lastMs = performance.now();
    /** @type {(() => void)[]} */
    this.waiting = [];
    if (perSecondMax < Infinity) setInterval(() => this.#drain(), 10).unref();
  }

  /** @returns {Promise<void>} */
  next() {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  #drain() {
    const due = Math.floor((performance.now() - this.lastMs) * this.perMs);
    // Unused capacity is not carried over.
    this.lastMs = this.waiting.length <= due ? performance.now() : this.lastMs + due / this.perMs;
    for (const go of this.waiting.splice(0, due)) go();
  }
}

/** @param {Client} client @param {string} section @param {string} field */
async function info(client, section, field) {
  const text = String(await client.send("INFO", section));
  return Number(new RegExp(`${field}:([\\d.]+)`).exec(text)?.[1]);
}

/** @param {readonly Client[]} clients @returns {Promise<number>} processor seconds of all of them */
async function serverSeconds(clients) {
  const each = clients.map(async (client) => {
    return (
      (await info(client, "cpu", "used_cpu_user")) + (await info(client, "cpu", "used_cpu_sys"))
    );
  });
  return (await Promise.all(each)).reduce((sum, seconds) => sum + seconds, 0);
}

function clientSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/**
 * Runs `work` for each number up to `count`, with `inFlight` at once. Returns the cost per run.
 *
 * @param {readonly Client[]} clients
 * @param {number} count
 * @param {number} inFlight
 * @param {(n: number) => Promise<unknown>} work
 */
async function measure(clients, count, inFlight, work) {
  const serversBefore = await serverSeconds(clients);
  const clientBefore = clientSeconds();
  const beganMs = performance.now();
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  const seconds = (performance.now() - beganMs) / 1_000;
  const clientUs = ((clientSeconds() - clientBefore) / count) * 1e6;
  const serverUs = (((await serverSeconds(clients)) - serversBefore) / count) * 1e6;
  return { perSecond: count / seconds, clientUs, serverUs };
}

/** @param {readonly number[]} values */
function median(values) {
  return [...values].sort((x, y) => x - y)[values.length >> 1] ?? 0;
}

/** @param {string} name @param {readonly Awaited<ReturnType<typeof measure>>[]} seen */
function report(name, seen) {
  const of = (/** @type {"perSecond" | "clientUs" | "serverUs"} */ key) => {
    const values = seen.map((one) => one[key]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return `${median(values).toFixed(0)} (${least.toFixed(0)} to ${most.toFixed(0)})`;
  };
  console.log(
    `${name.padEnd(34)} ${of("perSecond").padEnd(24)} ${of("clientUs").padEnd(18)} ${of("serverUs")}`,
  );
}

function heading() {
  console.log(`${"".padEnd(34)} ${"per second".padEnd(24)} ${"client µs".padEnd(18)} servers µs`);
}

/** @param {number} groups @param {number} [perSecondMax] */
async function openGroups(groups, perSecondMax) {
  const servers = await startRedisServers(groups * nodesPerGroup);
  const clients = await Promise.all(servers.map((server) => RedisConnection.open(server)));
  const lists = Array.from({ length: groups }, (_, group) =>
    connectionsOf(clients.slice(group * nodesPerGroup, (group + 1) * nodesPerGroup), perSecondMax),
  );
  const options = { admission: "off", maxTtl: "1h", nodeTimeout: "60s" };
  const locks = createLocks(redlockGroups(lists, options), { ttl: "1h", wait: 0 });
  // Loads the scripts in every group before the measurement.
  for (let n = 0; n < 100; n += 1) await (await locks.acquire(`warm-up:${n}`)).release();
  const close = async () => {
    await locks.close();
    for (const client of clients) client.close();
    for (const server of servers) await server.stop();
  };
  return { locks, clients, close };
}

async function throughput() {
  console.log(`\nacquire + release of one resource, ${cycles} cycles, median of ${rounds}`);
  heading();
  const counts = [1, 2, 4];
  const benches = await Promise.all(counts.map((groups) => openGroups(groups)));
  for (const inFlight of [64, 512]) {
    const seen = counts.map(() => /** @type {Awaited<ReturnType<typeof measure>>[]} */ ([]));
    // Interleaved, so that a busy moment of the machine affects all of them alike.
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, { locks, clients }] of benches.entries()) {
        const cycle = async (/** @type {number} */ n) => {
          await (await locks.acquire(`resource:${n}`)).release();
        };
        seen[index]?.push(await measure(clients, cycles, inFlight, cycle));
      }
    }
    for (const [index, groups] of counts.entries()) {
      report(`${groups} × ${nodesPerGroup}, ${inFlight} in flight`, seen[index] ?? []);
    }
  }
  for (const bench of benches) await bench.close();
}

async function limited() {
  const perSecondMax = 500;
  console.log(`\nacquire + release, each server given at most ${perSecondMax} commands a second`);
  heading();
  for (const groups of [1, 2, 4]) {
    const { locks, clients, close } = await openGroups(groups, perSecondMax);
    const cycle = async (/** @type {number} */ n) => {
      await (await locks.acquire(`resource:${n}`)).release();
    };
    report(`${groups} × ${nodesPerGroup}, 512 in flight`, [
      await measure(clients, 2_000 * groups, 512, cycle),
    ]);
    await close();
  }
}

async function across() {
  console.log(`\nacquire + release of two resources, ${cycles / 2} cycles, median of ${rounds}`);
  heading();
  const { locks, clients, close } = await openGroups(2);
  const { Rendezvous } = await loadSource("stores/redis/groups/rendezvous.js");
  const rendezvous = new Rendezvous(["1", "2"]);
  const homes = [[], []].map(() => /** @type {string[]} */ ([]));
  for (let n = 0; n < 40_000; n += 1) homes[rendezvous.homeOf(`pair:${n}`)]?.push(`pair:${n}`);
  const [one = [], two = []] = homes;
  const pairs = {
    "in one group": (/** @type {number} */ n) => [one[2 * (n % 5_000)], one[2 * (n % 5_000) + 1]],
    "in two groups": (/** @type {number} */ n) => [one[n % 10_000], two[n % 10_000]],
  };
  for (const [name, pair] of Object.entries(pairs)) {
    const seen = [];
    for (let round = 0; round < rounds; round += 1) {
      const cycle = async (/** @type {number} */ n) => {
        await (await locks.acquire(pair(n))).release();
      };
      seen.push(await measure(clients, cycles / 2, 64, cycle));
    }
    report(`${name}, 64 in flight`, seen);
  }
  await close();
}

async function held() {
  const { locks, clients, close } = await openGroups(1);
  const [first] = clients;
  if (first === undefined) throw new Error("no server");
  // Creates all counters, as on a node that has been in use.
  for (let n = 0; n < 10_000; n += 1) await (await locks.acquire(`fill:${n}`)).release();
  const memory = () => info(first, "memory", "used_memory");
  const heap = () => {
    globalThis.gc?.();
    globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  };
  const before = { server: await memory(), heap: heap() };
  const name = (/** @type {number} */ n) => `invoice:${String(n).padStart(8, "0")}`;
  /** @type {{ extend(): Promise<void>, release(): Promise<unknown> }[]} */
  const leases = [];
  const acquired = await measure(clients, heldCount, 256, async (n) => {
    leases[n] = await locks.acquire(name(n), { renew: false });
  });
  const after = { server: await memory(), heap: heap() };
  console.log(`\n${heldCount} held leases, resource names of 16 characters`);
  console.log(
    `record, MEMORY USAGE holdfast:node SAMPLES 0   ${String(await first.send("MEMORY", "USAGE", "holdfast:node", "SAMPLES", "0"))} B`,
  );
  console.log(
    `lock, MEMORY USAGE ${name(0)}             ${String(await first.send("MEMORY", "USAGE", name(0)))} B`,
  );
  console.log(
    `server, used_memory per lease and node         ${((after.server - before.server) / heldCount).toFixed(0)} B`,
  );
  const note = globalThis.gc === undefined ? " (run with --expose-gc)" : "";
  console.log(
    `client, heap per lease                         ${((after.heap - before.heap) / heldCount).toFixed(0)} B${note}`,
  );
  heading();
  report("acquire alone, 256 in flight", [acquired]);
  const renewals = [];
  for (let round = 0; round < 3; round += 1) {
    renewals.push(await measure(clients, heldCount, 256, async (n) => await leases[n]?.extend()));
  }
  report("renewal, 256 in flight", renewals);
  report("release, 256 in flight", [
    await measure(clients, heldCount, 256, async (n) => await leases[n]?.release()),
  ]);
  await close();
}

async function connections() {
  const server = await startRedis();
  const first = await RedisConnection.open(server);
  const count = 1_000;
  const before = await info(first, "memory", "used_memory");
  const open = await Promise.all(Array.from({ length: count }, () => RedisConnection.open(server)));
  await Promise.all(open.map((client) => client.send("PING")));
  const after = await info(first, "memory", "used_memory");
  // A server frees the buffers of a connection that has been idle for a few seconds.
  await sleep(8_000);
  const quiet = await info(first, "memory", "used_memory");
  const each = (/** @type {number} */ bytes) => `${((bytes - before) / count).toFixed(0)} B`;
  console.log(`\n${count} connections`);
  console.log(`server, used_memory per connection in use      ${each(after)}`);
  console.log(`server, used_memory per quiet connection       ${each(quiet)}`);
  console.log(`server, maxclients by default                  ${await maxClients(first)}`);
  for (const client of [first, ...open]) client.close();
  await server.stop();
}

/** @param {Client} client */
async function maxClients(client) {
  return await info(client, "clients", "maxclients");
}

const [cpu] = cpus();
console.log(`${cpus().length} × ${cpu?.model ?? "unknown"}, Node ${process.version}`);
const parts = { throughput, limited, across, held, connections };
for (const [name, run] of Object.entries(parts)) if (part === "all" || part === name) await run();
