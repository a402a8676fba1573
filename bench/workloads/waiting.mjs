// @ts-check
/**
 * Many managers that wait for one resource: their cost on the server while it is held, their
 * effect on another lock, and the speed of the hand-over. The same with as many clients that poll.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { endWorkers, openWorkers, record, recordCut, recordProblems } from "../bench.mjs";
import { quantile } from "../report/statistics.mjs";
import { RedisConnection } from "../../tools/redis/redis-connection.mjs";

/**
 * @import { Bench } from "../bench.mjs"
 * @import { Worker } from "../crew.mjs"
 * @import { CrowdResult, CyclesResult, Settings, Turn } from "../types.ts"
 * @typedef {RedisConnection} Connection
 */

const pollMs = 200;
const processesMax = 4;
const boundMs = 120_000;

/** @param {Bench} bench */
export async function waiting(bench) {
  const { quick, scale } = bench.options;
  const steps = quick || scale < 1 ? [0, 10, 100] : [0, 1, 10, 100, 1_000, 5_000];
  const ports = await bench.ports("one");
  const contenders = bench.contenders(
    1,
    quick ? ["floor", "fenced"] : ["floor", "fenced", "unfenced"],
  );
  for (const count of steps) {
    for (const contender of contenders) {
      if (bench.isLate("waiting")) return;
      bench.log(`waiting, N = 1: ${count} waiters, ${contender}`);
      const rounds = quick ? 1 : bench.options.rounds;
      for (let round = 0; round < rounds; round += 1) {
        await waitingCase(bench, { ports, contender, count, round });
      }
    }
  }
  bench.note(
    `waiting: raw polling tries again every ${pollMs} ms (± half of it); every waiter of Holdfast is a ` +
      `manager with a subscriber of its own, and those of one process, of up to ${processesMax}, ` +
      "share the client that sends commands; CPU by INFO, per ask that of the script or the SET " +
      "alone; a turn is given back at once",
  );
}

/** @param {Bench} bench @param {{ ports: number[], contender: string, count: number, round: number }} which */
async function waitingCase(bench, { ports, contender, count, round }) {
  const series = bench.seriesOf("waiting", `${count} waiters`, 1, contender);
  const resource = `${contender}:waiting:${count}`;
  /** @type {Settings} */
  const settings = {
    ports,
    ttlMs: 30_000,
    waitMs: 10 * boundMs,
    pollMs,
    renewEveryMs: 5_000,
    countCommands: false,
  };
  /** @type {Worker[]} */
  const opened = [];
  const server = await RedisConnection.open({ port: ports[0] ?? 0 });
  try {
    const [holder] = await openInto(opened, contender, 1, settings);
    const [passer] = await openInto(opened, contender, 1, settings);
    const processes = Math.min(processesMax, count);
    const managers = processes === 0 ? 0 : Math.ceil(count / processes);
    const crowd = await openInto(opened, contender, processes, { ...settings, managers });
    await holder?.ask("hold", resource, boundMs);
    await gather(crowd, { resource, count, contender, server });
    await sleep(bench.timeMs(8_000, 1_500));
    record(series, round, await serverCost(server, contender, bench.timeMs(10_000, 2_000)));
    record(series, round, { otherP99Ms: await otherP99(bench, contender, passer) });
    if (count > 0) await handOver(bench, { series, round, holder, crowd });
    else await holder?.ask("letGo", undefined, boundMs);
  } catch (error) {
    recordCut(series, error);
  } finally {
    server.close();
    await endWorkers(opened);
  }
}

/** @param {Worker[]} opened @param {string} contender @param {number} count @param {Settings} settings */
async function openInto(opened, contender, count, settings) {
  const workers = await openWorkers(contender, count, settings);
  opened.push(...workers);
  return workers;
}

/**
 * @param {readonly Worker[]} crowd
 * @param {{ resource: string, count: number, contender: string, server: Connection }} which
 */
async function gather(crowd, { resource, count, contender, server }) {
  let left = count;
  for (const [index, worker] of crowd.entries()) {
    const own = Math.ceil(left / (crowd.length - index));
    left -= own;
    await worker.ask("gather", { resource, count: own }, boundMs);
  }
  if (contender === "floor") return;
  const untilMs = performance.now() + boundMs;
  // Two members for each waiter.
  while (Number(await server.send("ZCARD", `holdfast:waiters:${resource}`)) < 2 * count) {
    if (performance.now() > untilMs) throw new Error("not all of them have a place");
    await sleep(100);
  }
}

/**
 * Returns the server's cost while no waiter is granted.
 * @param {Connection} server @param {string} contender @param {number} durationMs
 */
async function serverCost(server, contender, durationMs) {
  const commands = contender === "floor" ? ["set"] : ["evalsha", "eval"];
  const before = await usage(server, commands);
  await sleep(durationMs);
  const after = await usage(server, commands);
  // Without waiters there are only the holder's renewals.
  const asks = after.calls - before.calls;
  const seconds = (after.atMs - before.atMs) / 1_000;
  return {
    asksPerSecond: asks / seconds,
    askCpuUs: asks === 0 ? undefined : (after.usec - before.usec) / asks,
    serverCpuPercent: ((after.cpuSeconds - before.cpuSeconds) / seconds) * 100,
  };
}

/** @param {Connection} server @param {readonly string[]} commands */
async function usage(server, commands) {
  const stats = String(await server.send("INFO", "commandstats"));
  const cpu = String(await server.send("INFO", "cpu"));
  let [calls, usec] = [0, 0];
  for (const name of commands) {
    const found = new RegExp(`cmdstat_${name}:calls=(\\d+),usec=(\\d+)`).exec(stats);
    calls += Number(found?.[1] ?? 0);
    usec += Number(found?.[2] ?? 0);
  }
  const seconds = (/** @type {string} */ kind) =>
    Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(cpu)?.[1] ?? 0);
  return { calls, usec, cpuSeconds: seconds("user") + seconds("sys"), atMs: performance.now() };
}

/**
 * Measures another lock, which has no waiters.
 * @param {Bench} bench @param {string} contender @param {Worker | undefined} passer
 */
async function otherP99(bench, contender, passer) {
  const durationMs = bench.timeMs(5_000, 1_000);
  for (const warm of [true, false]) {
    const input = {
      prefix: `${contender}:beside`,
      inFlight: 1,
      durationMs: warm ? 1_000 : durationMs,
    };
    /** @type {CyclesResult | undefined} */
    const cycles = await passer?.ask("cycles", input, durationMs + boundMs);
    if (!warm) return cycles?.p99Ms;
  }
  return undefined;
}

/**
 * Releases the lock; from then on each waiter releases at once and waits again.
 *
 * @param {Bench} bench
 * @param {{ series: ReturnType<Bench["seriesOf"]>, round: number, holder: Worker | undefined, crowd: readonly Worker[] }} which
 */
async function handOver(bench, { series, round, holder, crowd }) {
  const durationMs = bench.timeMs(8_000, 1_500);
  await holder?.ask("letGo", undefined, boundMs);
  await sleep(durationMs);
  /** @type {CrowdResult[]} */
  const seen = await Promise.all(
    crowd.map((worker) => worker.ask("dismiss", { boundMs }, 2 * boundMs)),
  );
  const turns = seen.flatMap((each) => each.turns).sort(([a], [b]) => a - b);
  const between = pauses(turns, durationMs);
  const unserved = seen.reduce((sum, each) => sum + each.unserved, 0);
  const failed = seen.flatMap((each) => Object.values(each.failures));
  record(series, round, {
    turnsPerSecond: (between.length / durationMs) * 1_000,
    handOverP50Ms: quantile(between, 0.5),
    handOverP99Ms: quantile(between, 0.99),
    failed: failed.reduce((sum, count) => sum + count, unserved),
  });
  for (const { failures } of seen) recordProblems(series, failures);
  if (unserved > 0) recordProblems(series, { "waiters that were not served": unserved });
}

/**
 * Returns the sorted times from the begin of a release to the next grant.
 * @param {readonly Turn[]} turns @param {number} durationMs
 */
function pauses(turns, durationMs) {
  const endMs = (turns[0]?.[0] ?? 0) + durationMs;
  const found = turns.slice(1).flatMap(([grantedMs], index) => {
    const releasingMs = turns[index]?.[1] ?? grantedMs;
    return grantedMs > endMs ? [] : [Math.max(0, grantedMs - releasingMs)];
  });
  return found.sort((a, b) => a - b);
}
