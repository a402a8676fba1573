// @ts-check
/** Single turns on one resource, to measure the effect of a killed process on the others. */

import { machineMs } from "./failures.mjs";

/** @import { Contender } from "../types.ts" */

/** @type {unknown} */
let held;

/** Acquires the lock and keeps it. @param {Contender} contender @param {string} resource */
export async function grabTurn(contender, resource) {
  held = await contender.acquire(resource);
  return { grantedMs: machineMs() };
}

/** Acquires the lock and renews it. @param {Contender} contender @param {string} resource */
export async function holdTurn(contender, resource) {
  held = await contender.keep(resource);
  return { grantedMs: machineMs() };
}

/** Releases the lock that was renewed. @param {Contender} contender */
export async function dropTurn(contender) {
  const releasingMs = machineMs();
  await contender.drop(held);
  return { releasingMs };
}

/** @param {Contender} contender */
export async function freeTurn(contender) {
  const releasingMs = machineMs();
  await contender.release(held);
  return { releasingMs };
}

/** Acquires the lock and releases it. @param {Contender} contender @param {string} resource */
export async function waitForTurn(contender, resource) {
  const got = await contender.acquire(resource);
  const grantedMs = machineMs();
  await contender.release(got);
  return { grantedMs };
}
