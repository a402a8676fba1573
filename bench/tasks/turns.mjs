// @ts-check
/** Single turns on one resource, for what a killed process costs the others. */

import { machineMs } from "./failures.mjs";

/** @import { Contender } from "../types.ts" */

/** @type {unknown} */
let held;

/** Takes it and keeps it. @param {Contender} contender @param {string} resource */
export async function grabTurn(contender, resource) {
  held = await contender.acquire(resource);
  return { grantedMs: machineMs() };
}

/** Takes it and renews it. @param {Contender} contender @param {string} resource */
export async function holdTurn(contender, resource) {
  held = await contender.keep(resource);
  return { grantedMs: machineMs() };
}

/** Gives back what was held and renewed. @param {Contender} contender */
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

/** Takes it and gives it back. @param {Contender} contender @param {string} resource */
export async function waitForTurn(contender, resource) {
  const got = await contender.acquire(resource);
  const grantedMs = machineMs();
  await contender.release(got);
  return { grantedMs };
}
