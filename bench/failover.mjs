// @ts-check
/**
 * Counts grants that a failover loses, with and without `replicas.acks`, on real servers.
 *
 *   npm run faults:failover -- [--rounds 20] [--out table.md]
 *
 * Each round has a master, one or two replicas behind proxies that delay the replication, and a
 * client that acquires new locks as fast as it can. The master is killed (SIGKILL) meanwhile, and
 * a replica promoted. A grant is lost if its lease was returned to the client, and the promoted
 * server grants the same resource to another client while that lease is valid.
 */

import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { TcpProxy } from "../tools/network/tcp-proxy.mjs";
import { RedisConnection } from "../tools/redis/redis-connection.mjs";
import { startRedis } from "../tools/redis/redis-server.mjs";

// Imported from the built package at run time, because it exists only after a build.
/** @type {typeof import("../src/index.ts")} */
const { createLocks } = await import(new URL("../dist/index.js", import.meta.url).href);
/** @type {typeof import("../src/stores/redis/index.ts")} */
const { redis } = await import(new URL("../dist/stores/redis/index.js", import.meta.url).href);

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, out: { type: "string" } },
});
const rounds = Number(values.rounds);
const workers = 32;

/**
 * @typedef {object} Scenario
 * @property {string} name
 * @property {number} acks
 * @property {readonly number[]} delaysMs one for each replica; the last is promoted
 */

/** @type {readonly Scenario[]} */
const scenarios = [
  { name: "one replica, 0 ms behind", acks: 0, delaysMs: [0] },
  { name: "one replica, 0 ms behind", acks: 1, delaysMs: [0] },
  { name: "one replica, 5 ms behind", acks: 0, delaysMs: [5] },
  { name: "one replica, 5 ms behind", acks: 1, delaysMs: [5] },
  { name: "one replica, 50 ms behind", acks: 0, delaysMs: [50] },
  { name: "one replica, 50 ms behind", acks: 1, delaysMs: [50] },
  { name: "two replicas, the slow one promoted (50 ms)", acks: 1, delaysMs: [0, 50] },
  { name: "two replicas, the slow one promoted (50 ms)", acks: 2, delaysMs: [0, 50] },
];

/** @param {number} port */
async function dial(port) {
  const client = new Redis({ port, host: "127.0.0.1", retryStrategy: () => null });
  client.on("error", () => undefined);
  for (let tries = 0; client.status !== "ready" && tries < 200; tries += 1) await sleep(10);
  return client;
}

/**
 * @param {number} port
 * @param {readonly number[]} delaysMs
 */
async function startReplicas(port, delaysMs) {
  return await Promise.all(
    delaysMs.map(async (delayMs) => {
      // Bytes under way when the master dies never arrive, as in a real network.
      const line = await TcpProxy.open(port, { losesAtEnd: true });
      line.setDelay(delayMs, ["replies"]);
      const server = await startRedis({ args: ["--replicaof", "127.0.0.1", String(line.port)] });
      const connection = await RedisConnection.open(server);
      for (let tries = 0; ; tries += 1) {
        const info = String(await connection.send("INFO", "replication"));
        if (info.includes("master_link_status:up")) break;
        if (tries > 500) throw new Error("the replica does not come up");
        await sleep(10);
      }
      return {
        server,
        connection,
        async stop() {
          connection.close();
          await server.stop();
          await line.stop();
        },
      };
    }),
  );
}

/** @param {Scenario} scenario */
async function runRound({ acks, delaysMs }) {
  const master = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
  const replicas = await startReplicas(master.port, delaysMs);
  const client = await dial(master.port);
  const locks = createLocks(redis(client, { replicas: { acks, timeout: "500ms" } }), {
    ttl: "20s",
  });
  // One lease is extended just before the end, because an extension can be lost like a grant.
  const kept = await locks.acquire("kept", { ttl: "5s", wait: "5s" });
  /** @type {{ resource: string, lease: import("../src/index.ts").Lease }[]} */
  const granted = [];
  const load = { running: true };
  const work = Array.from({ length: workers }, async (_, worker) => {
    for (let turn = 0; load.running; turn += 1) {
      const resource = `lock:${worker}:${turn}`;
      try {
        granted.push({ resource, lease: await locks.acquire(resource, { wait: 0 }) });
      } catch {
        return;
      }
    }
  });
  const beganMs = performance.now();
  await sleep(200 + Math.random() * 200);
  const tookMs = performance.now() - beganMs;
  const inTime = granted.length;
  const extended = await kept.extend("20s").then(
    () => true,
    () => false,
  );
  await master.stop();
  load.running = false;
  await Promise.all(work);

  const promoted = replicas.at(-1);
  if (promoted === undefined) throw new Error("no replica to promote");
  await promoted.connection.send("REPLICAOF", "NO", "ONE");
  const other = await dial(promoted.server.port);
  const others = createLocks(redis(other), { ttl: "20s" });
  let lost = 0;
  let unfenced = 0;
  for (const { resource, lease } of granted) {
    const second = await others.tryAcquire(resource);
    if (second === undefined || lease.remainingMs() === 0) continue;
    lost += 1;
    if (second.fence <= lease.fence) unfenced += 1;
  }
  const leftMs = Number(await promoted.connection.send("PTTL", "kept"));
  const shortened = extended && kept.remainingMs() > Math.max(0, leftMs);
  // The manager of the dead master is not closed, as if its client had crashed.
  client.disconnect();
  await others.close();
  other.disconnect();
  await Promise.all(replicas.map((replica) => replica.stop()));
  await locks.close();
  const perSecond = (inTime / tookMs) * 1_000;
  return { granted: granted.length, lost, unfenced, shortened, perSecond };
}

/** @param {Scenario} scenario */
async function runScenario(scenario) {
  const total = { granted: 0, lost: 0, unfenced: 0, hit: 0, shortened: 0 };
  /** @type {number[]} */
  const rates = [];
  for (let round = 0; round < rounds; round += 1) {
    const result = await runRound(scenario);
    total.granted += result.granted;
    total.lost += result.lost;
    total.unfenced += result.unfenced;
    total.hit += result.lost > 0 ? 1 : 0;
    total.shortened += result.shortened ? 1 : 0;
    rates.push(result.perSecond);
  }
  rates.sort((a, b) => a - b);
  return { ...scenario, ...total, perSecond: rates[Math.floor(rates.length / 2)] ?? 0 };
}

const results = [];
for (const scenario of scenarios) {
  const result = await runScenario(scenario);
  results.push(result);
  console.log(JSON.stringify(result));
}

/** @param {number} value */
const whole = (value) => Math.round(value).toLocaleString("en");
const header = [
  "| set-up | acks | grants handed out | forgotten by the failover | rounds with any | " +
    "extensions forgotten | smaller or equal fences | grants per second |",
  "| --- | --- | --- | --- | --- | --- | --- | --- |",
];
const rows = results.map((r) => {
  const share = ((r.lost / Math.max(1, r.granted)) * 100).toFixed(2);
  return (
    `| ${r.name} | ${r.acks} | ${whole(r.granted)} | ${whole(r.lost)} (${share} %) | ` +
    `${r.hit} of ${rounds} | ${r.shortened} of ${rounds} | ${r.unfenced} | ${whole(r.perSecond)} |`
  );
});
const table = [...header, ...rows].join("\n");
console.log(table);
if (values.out !== undefined) writeFileSync(values.out, `${table}\n`);
process.exit(0);
