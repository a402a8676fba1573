import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { steadyClock } from "../../core/steady-clock.ts";
import { nodeRuntime } from "../../runtime/node-runtime.ts";
import { readOrder, type Order } from "./orders.ts";
import { killAfterMs, marginMs, stopLeftMs } from "./stop-plan.ts";
import { isAlive, signalAll } from "./target.ts";

/**
 * A process beside `exec` that outlives it. It hears over a pipe how long the lease is good for; if
 * the pipe closes, because `exec` was killed, or if the time runs out because `exec` is stopped, it
 * ends the command. `exec` kills it when all is over. It does nothing else, and has no lock.
 */

const lookMs = 20;

const clock = steadyClock(nodeRuntime.clock);
/** When the lease ends. */
let untilSteadyMs = 0;
let order: Order | undefined;
// A watchdog that replaces another starts with the last order: its parent may die next.
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
  // Whatever is meant for the command must not end its guard first.
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
  // A little after `exec` itself would act, so that it can tell why.
  const dueMs = leftMs() - stopLeftMs(terms) + marginMs(terms) / 2;
  if (dueMs <= 0) stop(order, terms.graceMs);
  // Both clocks are looked at often: the monotonic one stands still while the machine sleeps, and
  // a step back of the wall clock must not hide a sleep that comes after it.
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
  const killAtMs = performance.now() + killAfterMs({ ...terms, graceMs }, left);
  tellFirst();
  let known = signalAll(target, graceMs > 0 ? "SIGTERM" : "SIGKILL");
  // A stopped process cannot end before it goes on.
  known = signalAll(target, "SIGCONT", known);
  const look = (): void => {
    if (!isAlive(target, known)) process.exit(0);
    if (performance.now() < killAtMs) {
      setTimeout(look, lookMs);
      return;
    }
    signalAll(target, "SIGKILL", known);
    process.exit(0);
  };
  look();
}

/** Before the command ends, so that `exec`, if it lives, cannot mistake it for an ordinary end. */
function tellFirst(): void {
  try {
    writeSync(process.stdout.fd, "stopping\n");
  } catch {
    // Nobody is there to be told.
  }
}
