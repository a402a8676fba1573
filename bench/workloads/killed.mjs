// @ts-check
/** Effect of a killed process on the others: of the next waiter, or of the holder. */

import { setTimeout as sleep } from "node:timers/promises";
import { endWorkers, openWorkers, record, recordCut, shuffled } from "../bench.mjs";
import { machineMs } from "../tasks/failures.mjs";

/** @import { Bench } from "../bench.mjs" */
/** @import { Worker } from "../crew.mjs" */

const ttlMs = 2_000;
const pollMs = 5;
const settleMs = 150;

/** @param {Bench} bench */
export async function killed(bench) {
  const { quick, rounds } = bench.options;
  for (const nodes of bench.options.nodes) {
    const ports = await bench.ports(nodes === 1 ? "one" : "five");
    const among = ["floor", "fenced", "unfenced", "redis-semaphore", "redlock5", "verrou"];
    const contenders = bench.contenders(nodes, quick ? ["floor", "fenced"] : among);
    bench.log(`killed, N = ${nodes}: ${contenders.length} contenders`);
    for (let round = 0; round < Math.min(rounds, quick ? 1 : 3); round += 1) {
      for (const contender of shuffled(contenders)) {
        if (bench.isLate("killed")) return;
        const settings = {
          ports,
          ttlMs,
          waitMs: 15_000,
          pollMs,
          renewEveryMs: ttlMs / 3,
          countCommands: false,
        };
        for (const label of /** @type {const} */ (["waiter", "holder"])) {
          const series = bench.seriesOf("killed", label, nodes, contender);
          try {
            const workers = await openWorkers(contender, 4, settings);
            const play = label === "waiter" ? killWaiter : killHolder;
            try {
              const name = `${contender}:killed:${label}:${round}`;
              record(series, round, { costMs: await play(workers, name) });
            } finally {
              await endWorkers(workers);
            }
          } catch (error) {
            recordCut(series, error);
          }
        }
      }
    }
  }
  bench.note(`killed: TTL ${ttlMs} ms, raw polling and peers try again every ${pollMs} ms`);
}

/**
 * Kills the first waiter while another process holds the lock. Returns the time from the release
 * to the next grant.
 *
 * @param {readonly Worker[]} workers
 * @param {string} resource
 */
async function killWaiter([holder, victim, ...others], resource) {
  if (holder === undefined || victim === undefined) throw new Error("no process");
  await holder.ask("grab", resource, 20_000);
  const waiting = victim.ask("wait", resource, 20_000).catch(() => undefined);
  await sleep(settleMs);
  const next = firstGrant(others, resource);
  await sleep(settleMs);
  await victim.kill();
  await waiting;
  /** @type {{ releasingMs: number }} */
  const { releasingMs } = await holder.ask("free", undefined, 20_000);
  return (await next) - releasingMs;
}

/**
 * Kills the holder right after its grant. Returns the time from its death to the next grant. The
 * holder renews nothing, so its TTL began a few milliseconds before. This is the worst case: a
 * holder that dies between renewals has used up a part of its TTL.
 *
 * @param {readonly Worker[]} workers
 * @param {string} resource
 */
async function killHolder([holder, ...others], resource) {
  if (holder === undefined) throw new Error("no process");
  await holder.ask("grab", resource, 20_000);
  const killedMs = machineMs();
  const next = firstGrant(others, resource);
  await holder.kill();
  return (await next) - killedMs;
}

/** @param {readonly Worker[]} workers @param {string} resource */
async function firstGrant(workers, resource) {
  const grants = await Promise.all(
    workers.map(async (worker) => {
      /** @type {{ grantedMs: number }} */
      const { grantedMs } = await worker.ask("wait", resource, 20_000);
      return grantedMs;
    }),
  );
  return Math.min(...grants);
}
