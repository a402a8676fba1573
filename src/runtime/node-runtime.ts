import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { channel, type Channel } from "node:diagnostics_channel";
import type { AsyncContext, Clock, Diagnostics, Random, Runtime } from "../core/ports.ts";
import {
  clearImmediate,
  clearTimeout,
  fakeTimersAtLoad,
  monotonicMs,
  setImmediate,
  setTimeout,
  wallMs,
} from "./real-time.ts";
import { LoopStalls } from "./stalls.ts";

/** Least delay of a timer that counts as a stall. Other callbacks cause shorter delays. */
const stallMs = 5;

const clock: Clock = {
  monotonicMs,
  wallMs,
  setTimer(delayMs, keepAlive, callback) {
    const dueMs = monotonicMs() + delayMs;
    let hop: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => {
      // A late timer calls back one turn later: Node.js first reports the garbage collection that
      // may have caused the delay, and the callback may explain a lost lease by it.
      if (monotonicMs() - dueMs < stallMs) callback();
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
  // setTimeout counts whole milliseconds from the start of the loop's iteration: up to 1 ms late.
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
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.emitWarning(`a listener of a Holdfast event threw: ${text}`, "HoldfastWarning");
  },
};

const storage = new AsyncLocalStorage<object>();

const asyncContext: AsyncContext = {
  run: (value, work) => storage.run(value, work),
  current: () => storage.getStore(),
};

/** The real clock, timers and randomness of this process. */
export const nodeRuntime: Runtime = {
  clock,
  random,
  diagnostics,
  asyncContext,
  stalls: new LoopStalls(monotonicMs),
};

if (fakeTimersAtLoad) {
  process.emitWarning(
    "Holdfast was loaded while fake timers were installed: its waits and renewals stand still. " +
      "Load it before, or give createLocks the runtime of holdfast/testing",
    "HoldfastWarning",
  );
}
