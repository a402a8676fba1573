// @ts-check
/** Many callers that wait for one resource, and get it one after the other. */

import { setTimeout as sleep } from "node:timers/promises";
import { Failures, machineMs } from "./failures.mjs";

/** @import { Contender, CrowdResult, Turn } from "../types.ts" */

/** @typedef {{ isOver: boolean, unserved: number, failures: Failures, turns: Turn[] }} Crowd */

/** @type {Crowd} */
let crowd = { isOver: false, unserved: 0, failures: new Failures(), turns: [] };
/** @type {Promise<unknown>} */
let all = Promise.resolve();

/**
 * Starts the waits, and returns at once.
 *
 * @param {Contender} contender
 * @param {{ resource: string, count: number }} input
 */
export async function gatherCrowd(contender, { resource, count }) {
  const gathered = { isOver: false, unserved: count, failures: new Failures(), turns: [] };
  crowd = gathered;
  all = Promise.all(Array.from({ length: count }, () => takeTurns(contender, resource, gathered)));
}

/** @param {Contender} contender @param {string} resource @param {Crowd} own */
async function takeTurns(contender, resource, own) {
  do {
    try {
      const held = await contender.acquire(resource);
      const grantedMs = machineMs();
      const releasing = contender.release(held);
      own.turns.push([grantedMs, machineMs()]);
      await releasing;
    } catch (error) {
      own.failures.add("turn", error);
      await sleep(100);
    }
  } while (!own.isOver);
  own.unserved -= 1;
}

/**
 * Lets each waiter have its last turn, and ends the crowd.
 *
 * @param {{ boundMs: number }} input
 * @returns {Promise<CrowdResult>}
 */
export async function dismissCrowd({ boundMs }) {
  const own = crowd;
  own.isOver = true;
  const bound = new AbortController();
  await Promise.race([
    all.then(() => bound.abort()),
    sleep(boundMs, undefined, { signal: bound.signal }).catch(() => undefined),
  ]);
  return { turns: own.turns, failures: own.failures.counts, unserved: own.unserved };
}
