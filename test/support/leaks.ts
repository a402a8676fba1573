import { syncBuiltinESMExports } from "node:module";
import timersModule from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach } from "vitest";

/**
 * Call `watchLeaks()` once, at the top of a test file or a describe block. Each test then fails
 * if it leaves something behind, after all of its hooks, that was not there when it began:
 *
 * - a timer, also an unref'd one if the library set it (timers of `node:timers/promises` are not
 *   seen);
 * - a socket, server, pipe or child process;
 * - whatever `also` returns, for example keys on a server.
 *
 * Closing takes a moment, so the test has `graceMs` to get there. It looks at the whole process:
 * tests that run concurrently within one file cannot be distinguished.
 */
export function watchLeaks(options: WatchOptions = {}): void {
  const { graceMs = 2_000, also = () => [] } = options;
  watching = true;
  beforeEach(({ onTestFinished }) => {
    const before = countResources();
    timers.clear();
    // Registered before any other and run in reverse: this is the last thing that a test does.
    onTestFinished(async () => {
      const deadline = performance.now() + graceMs;
      let left = await findLeaks(before, also);
      while (left.length > 0 && performance.now() < deadline) {
        await sleep(10);
        left = await findLeaks(before, also);
      }
      timers.clear();
      if (left.length === 0) return;
      throw new Error(`the test left behind:\n${left.map((leak) => `- ${leak}`).join("\n")}`);
    });
  });
}

export interface WatchOptions {
  /** Limit for the time that closing takes. @default 2000 */
  readonly graceMs?: number;
  /** Returns more leaks, for example keys on a server. */
  readonly also?: () => readonly string[] | Promise<readonly string[]>;
}

/** Types of resources that keep the event loop alive and that a test can leave behind. */
const watchedResources = new Set([
  "FSEventWrap",
  "PipeServerWrap",
  "PipeWrap",
  "ProcessWrap",
  "StatWatcher",
  "TCPServerWrap",
  "TCPSocketWrap",
  "TLSWrap",
  "TCPWRAP",
  "UDPWRAP",
  "UDPWrap",
  "Worker",
]);

async function findLeaks(
  before: ReadonlyMap<string, number>,
  also: NonNullable<WatchOptions["also"]>,
): Promise<string[]> {
  const leaks = [...(await also())];
  for (const [timer, origin] of timers) {
    if (isOver(timer)) timers.delete(timer);
    else if (timer.hasRef() || isFromLibrary(origin)) leaks.push(`a timer set ${whence(origin)}`);
  }
  for (const [type, count] of countResources()) {
    const more = count - (before.get(type) ?? 0);
    if (more > 0) leaks.push(`${more} × ${type}`);
  }
  return leaks;
}

/** Counts what keeps the event loop alive right now, by type. */
function countResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const type of process.getActiveResourcesInfo()) {
    if (watchedResources.has(type)) counts.set(type, (counts.get(type) ?? 0) + 1);
  }
  return counts;
}

/**
 * Timers, each with the place that set it. Node counts only timers that keep the process alive,
 * which those of the library do not. So the timer functions are replaced. A set-up file loads this
 * module before the library, which keeps the functions that it finds.
 */
const timers = new Map<NodeJS.Timeout, Error>();
let watching = false;
const timersMax = 1_000;

function track(original: typeof setTimeout): typeof setTimeout {
  const tracked = (callback: () => void, delayMs?: number, ...rest: []): NodeJS.Timeout => {
    const timer = original(callback, delayMs, ...rest);
    if (!watching) return timer;
    const depth = Error.stackTraceLimit;
    Error.stackTraceLimit = 8;
    timers.set(timer, new Error("set here"));
    Error.stackTraceLimit = depth;
    if (timers.size > timersMax) {
      for (const known of timers.keys()) if (isOver(known)) timers.delete(known);
    }
    return timer;
  };
  // Copies the properties of the function, such as its promisified form.
  return Object.defineProperties(tracked, Object.getOwnPropertyDescriptors(original)) as never;
}

globalThis.setTimeout = track(globalThis.setTimeout);
globalThis.setInterval = track(globalThis.setInterval as never);
// The library takes its timers from the module when it is loaded, which is after this file.
timersModule.setTimeout = globalThis.setTimeout;
timersModule.setInterval = globalThis.setInterval;
syncBuiltinESMExports();

/** True if the timer has fired or was cleared. Node has no public way to find out. */
function isOver(timer: NodeJS.Timeout): boolean {
  return (timer as unknown as { readonly _destroyed: boolean })._destroyed;
}

const sourceFolder = new URL("../../src/", import.meta.url).pathname;

function isFromLibrary(origin: Error): boolean {
  return origin.stack?.includes(sourceFolder) ?? false;
}

function whence(origin: Error): string {
  const frames = (origin.stack ?? "").split("\n").slice(1);
  const outside = frames.filter((frame) => !frame.includes("support/leaks.ts"));
  return outside
    .slice(0, 4)
    .map((frame) => frame.trim())
    .join(" ");
}
