import { LeaseLostError } from "../core/errors.ts";
import type { Lease } from "../core/lease/lease.ts";
import type { AttemptRecord } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";

/**
 * Tolerance for the steady clock: a wall clock has whole milliseconds, and the library ignores wall
 * clock differences below 2 ms.
 */
const steadySlackMs = 3;

/** Tolerance for a loss that is reported just before the end. It contains `steadySlackMs`. */
const earlySlackMs = 6;

/** Returns the validity left by the process's own clocks, computed independently of the library. */
export function leftMs(machine: SimulatedProcess, record: AttemptRecord): number {
  return Math.min(
    record.validUntilMonotonicMs - machine.monotonicMs(),
    record.validUntilWallMs - machine.wallMs(),
    record.validUntilSteadyMs - machine.steadyMs() + steadySlackMs,
  );
}

/**
 * Returns a description of a loss that names the end of the validity as its reason before that end,
 * or undefined. An extension whose reply arrived just now may have come too late for the library.
 */
export function earlyLoss(
  machine: SimulatedProcess,
  record: AttemptRecord,
  { signal }: Lease,
  nowMs: number,
): string | undefined {
  const error: unknown = signal.reason;
  if (!(error instanceof LeaseLostError) || record.extendedMs === nowMs) return undefined;
  if (error.reason !== "expired" && error.reason !== "unreachable") return undefined;
  const earlyMs = leftMs(machine, record) - earlySlackMs;
  if (earlyMs <= 0) return undefined;
  const what = `${machine.name} lost ${record.resources.join("+")} as ${error.reason}`;
  return `${what}, ${earlyMs.toFixed(3)} ms before its end`;
}
