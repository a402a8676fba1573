import { randomBytes } from "node:crypto";
import { channel, type Channel } from "node:diagnostics_channel";
// The global of this name is a getter, asked anew on every look at the clock.
import { performance } from "node:perf_hooks";
import type { Clock, Diagnostics, Random, Runtime } from "../core/ports.ts";
import { LoopStalls } from "./stalls.ts";

/** A timer that is late by so much was held up by more than its neighbours. */
const stallMs = 5;

const clock: Clock = {
  // CLOCK_MONOTONIC: nobody can set it, but it stands still while the machine is suspended.
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(delayMs, keepAlive, callback) {
    const dueMs = performance.now() + delayMs;
    let hop: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => {
      // After a stall Node first has to tell what it was: a garbage collection, perhaps.
      if (performance.now() - dueMs < stallMs) callback();
      else hop = setImmediate(callback);
    }, delayMs);
    if (!keepAlive) timer.unref();
    const keep = (alive: boolean): void => void (alive ? timer.ref() : timer.unref());
    const cancel = (): void => {
      clearTimeout(timer);
      clearImmediate(hop);
    };
    return Object.assign(cancel, { keepAlive: keep });
  },
  // setTimeout counts whole milliseconds, and from the start of the loop's turn.
  timerSlackMs: 1,
};

const random: Random = {
  fraction: () => Math.random(),
  uniqueBase: () => randomBytes(16).toString("base64url"),
};

const channels = new Map<string, Channel>();

function channelOf(name: string): Channel {
  let found = channels.get(name);
  if (found === undefined) {
    found = channel(`holdfast:${name}`);
    channels.set(name, found);
  }
  return found;
}

const diagnostics: Diagnostics = {
  hasSubscribers: (name) => channelOf(name).hasSubscribers,
  publish: (name, event) => channelOf(name).publish(event),
  listenerFailed(error) {
    const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.emitWarning(`a listener of a Holdfast event threw: ${told}`, "HoldfastWarning");
  },
};

/** The real clock, timers and randomness of this process. */
export const nodeRuntime: Runtime = {
  clock,
  random,
  diagnostics,
  stalls: new LoopStalls(() => clock.monotonicMs()),
};
