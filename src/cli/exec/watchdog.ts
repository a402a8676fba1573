import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { steadyClock } from "../../core/time/instant.ts";
import { nodeRuntime } from "../../runtime/node-runtime.ts";
import { readOrder, type Order } from "./orders.ts";
import { ProcessTree } from "./process-tree.ts";
import { killAfterMs, marginMs, stopLeftMs } from "./stop-plan.ts";

/**
 * Watchdog: a process beside `exec` that continues if `exec` dies.
 *
 * The watchdog receives the validity of the lease over a pipe. It ends the command if the pipe
 * closes (`exec` was killed) or if the validity runs out (`exec` is stopped). When the command has
 * ended, `exec` kills the watchdog. The watchdog does nothing else and holds no lock.
 */

const lookMs = 20;
/** Limit for the time until processes have ended after SIGKILL. */
const goneMsMax = 5_000;
/** Time after which a command that is just being started has its mark in its environment. */
const startingMs = 500;

const clock = steadyClock(nodeRuntime.clock);
/** End of the lease on the steady clock. */
let untilSteadyMs = 0;
let order: Order | undefined;
// A watchdog that replaces a killed one gets the last order as an argument, because `exec` may die
// before it writes to the pipe.
take(readOrder(process.argv[2] ?? ""));
let timer: NodeJS.Timeout | undefined;
let stopping = false;

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  take(readOrder(line));
  arm();
});
lines.on("close", () => {
  if (order === undefined) process.exit(0);
  else stop(order, order.orphanGraceMs);
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) {
  // Signals for the command must not end its watchdog.
  process.on(signal, () => undefined);
}

arm();

function take(next: Order | undefined): void {
  if (next === undefined) return;
  order = next;
  untilSteadyMs = clock.now().steadyMs + leftAtArrival(next);
}

function arm(): void {
  clearTimeout(timer);
  if (order === undefined || stopping) return;
  const { terms } = order;
  // The watchdog acts slightly later than `exec` would, so that `exec` can report the reason.
  const dueMs = leftMs() - stopLeftMs(terms) + marginMs(terms) / 2;
  if (dueMs <= 0) stop(order, terms.graceMs);
  // Looks again at least every 500 ms, because of sleeps of the machine. In a sleep only the wall
  // clock goes on, and a step back of it between two looks would hide the sleep.
  else timer = setTimeout(arm, Math.min(dueMs, 500));
}

function leftAtArrival({ untilNs, untilWallMs }: Order): number {
  const left = Number(BigInt(untilNs) - process.hrtime.bigint()) / 1e6;
  return Math.min(left, untilWallMs - Date.now());
}

function leftMs(): number {
  return untilSteadyMs - clock.now().steadyMs;
}

function stop(last: Order, graceMs: number): void {
  if (stopping) return;
  stopping = true;
  const { target, terms } = last;
  const left = Math.max(1, leftMs());
  const patienceMs = killAfterMs({ ...terms, graceMs }, left);
  const isStarting = target.pid === 0;
  const killAtMs = performance.now() + Math.max(patienceMs, isStarting ? startingMs : 0);
  sendFirst();
  const tree = new ProcessTree(target);
  if (graceMs > 0) {
    tree.signal("SIGTERM");
    // A stopped process handles SIGTERM only after SIGCONT.
    tree.signal("SIGCONT");
  } else {
    tree.kill();
  }
  const look = (): void => {
    if (!isStarting && !tree.isAlive()) process.exit(0);
    if (performance.now() < killAtMs) {
      setTimeout(look, lookMs);
      return;
    }
    tree.kill();
    exitWhenGone(tree, performance.now() + goneMsMax);
  };
  look();
}

/**
 * Ends the watchdog when all processes have ended. The next holder of the lock waits for its end. A
 * process that cannot be killed does not keep it for ever.
 */
function exitWhenGone(tree: ProcessTree, untilMs: number): void {
  if (!tree.isAlive() || performance.now() > untilMs) process.exit(0);
  setTimeout(() => exitWhenGone(tree, untilMs), lookMs);
}

/**
 * Reports the stop to `exec` before the command ends, so that `exec` does not take this for a
 * normal end of the command.
 */
function sendFirst(): void {
  try {
    writeSync(process.stdout.fd, "stopping\n");
  } catch {
    // The error is ignored, because `exec` has ended and reads nothing.
  }
}
