// @ts-check
/** Many tasks that want the same resource again and again. */

import { setTimeout as sleep } from "node:timers/promises";
import { RedisConnection } from "../../tools/redis/redis-connection.mjs";
import { commandsSent } from "../contenders/clients.mjs";
import { cpuUs, Failures, machineMs } from "./failures.mjs";

/** @import { Contender, ContendInput, ContendResult, Section } from "../types.ts" */

const graceMs = 5_000;

/**
 * @param {Contender} contender
 * @param {ContendInput} input
 * @returns {Promise<ContendResult>}
 */
export async function contend(contender, input) {
  const { resource, firstTask, tasks, thinkMs, startAtMs, durationMs, counterPort } = input;
  const counter =
    counterPort === undefined ? undefined : await RedisConnection.open({ port: counterPort });
  const failures = new Failures();
  /** @type {Section[]} */
  const sections = [];
  let overlapsCounted = 0;
  const state = { isOver: false };
  const inside = async () => {
    if (counter !== undefined) {
      const others = Number(await counter.send("INCR", resource)) - 1;
      if (others > 0) overlapsCounted += 1;
    }
    if (thinkMs > 0) await sleep(thinkMs);
    if (counter !== undefined) await counter.send("DECR", resource);
  };
  const one = async (/** @type {number} */ task) => {
    while (!state.isOver) {
      const askedMs = machineMs();
      let held;
      try {
        held = await contender.acquire(resource);
      } catch (error) {
        failures.add("acquire", error);
        await sleep(1);
        continue;
      }
      const grantedMs = machineMs();
      await inside();
      const releasingMs = machineMs();
      try {
        await contender.release(held);
      } catch (error) {
        failures.add("release", error);
      }
      sections.push([task, askedMs, grantedMs, releasingMs, machineMs()]);
    }
  };
  await sleep(Math.max(0, startAtMs - machineMs()));
  const sentBefore = commandsSent();
  const cpuBeforeUs = cpuUs();
  let unfinished = tasks;
  const all = Promise.all(
    Array.from({ length: tasks }, async (_, n) => {
      await one(firstTask + n);
      unfinished -= 1;
    }),
  );
  await sleep(durationMs);
  state.isOver = true;
  const commands = commandsSent() - sentBefore;
  const usedUs = cpuUs() - cpuBeforeUs;
  // Lets tasks that still wait have a last turn, up to a time limit.
  const grace = new AbortController();
  await Promise.race([
    all.then(() => grace.abort()),
    sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined),
  ]);
  counter?.close();
  return {
    sections,
    failures: failures.counts,
    commands,
    cpuUs: usedUs,
    overlapsCounted,
    unfinished,
  };
}
