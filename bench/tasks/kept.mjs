// @ts-check
/** Many locks that are held and renewed. */

import { setTimeout as sleep } from "node:timers/promises";
import { cpuUs, Failures } from "./failures.mjs";

/** @import { Contender } from "../types.ts" */

/** @type {unknown[]} */
let kept = [];
/** @type {string[]} */
let names = [];
/** @type {"drop" | "release"} */
let dropOne = "drop";
const atOnce = 256;

/** @param {number} count @param {(n: number) => Promise<void>} work */
async function spread(count, work) {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}

/**
 * Keeps locks until there are `count`. Creates the names first, so that the heap of the locks does
 * not include them.
 *
 * @param {Contender} contender
 * @param {{ prefix: string, count: number, renewing?: boolean }} input
 */
export async function keepMany(contender, { prefix, count, renewing = true }) {
  dropOne = renewing ? "drop" : "release";
  const take = renewing ? contender.keep : contender.acquire;
  const before = kept.length;
  names = Array.from({ length: count }, (_, n) => `${prefix}:${String(n).padStart(8, "0")}`);
  kept = [...kept, ...Array.from({ length: count - before }, () => undefined)];
  const heapBefore = measureHeapNow();
  const failures = new Failures();
  const cpuBeforeUs = cpuUs();
  const beganMs = performance.now();
  await spread(count - before, async (n) => {
    try {
      kept[before + n] = await take(names[before + n] ?? "");
    } catch (error) {
      failures.add("keep", error);
    }
  });
  const elapsedMs = performance.now() - beganMs;
  const usedUs = cpuUs() - cpuBeforeUs;
  const heapEach = (measureHeapNow() - heapBefore) / (count - before);
  return { elapsedMs, cpuUs: usedUs, heapEach, failures: failures.counts };
}

/** @param {Contender} contender */
export async function dropAll(contender) {
  const failures = new Failures();
  await spread(kept.length, async (n) => {
    if (kept[n] === undefined) return;
    try {
      await contender[dropOne](kept[n]);
    } catch (error) {
      failures.add("drop", error);
    }
  });
  kept = [];
  names = [];
  return { failures: failures.counts };
}

/** Waits while the library renews. Returns its CPU time. @param {{ durationMs: number }} input */
export async function watchRenewals({ durationMs }) {
  const cpuBeforeUs = cpuUs();
  await sleep(durationMs);
  return { cpuUs: cpuUs() - cpuBeforeUs };
}

export async function measureHeap() {
  return measureHeapNow();
}

function measureHeapNow() {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
