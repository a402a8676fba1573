import { LeaseLostError } from "../core/errors.ts";
import type { Lease } from "../core/lease/lease.ts";
import type { AttemptRecord } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";

/**
 * Tolerance for `SimulatedProcess.steadyMs`: a wall clock shows whole milliseconds, and the library
 * ignores wall clock differences below 2 ms.
 */
const steadySlackMs = 3;

/** Tolerance for a lease that is lost just before its validity ends. Includes `steadySlackMs`. */
const earlySlackMs = 6;

/** Returns the remaining validity by the process's clocks, computed without the library's code. */
export function leftMs(machine: SimulatedProcess, record: AttemptRecord): number {
  return Math.min(
    record.validUntilMonotonicMs - machine.monotonicMs(),
    record.validUntilWallMs - machine.wallMs(),
    record.validUntilSteadyMs - machine.steadyMs() + steadySlackMs,
  );
}

/**
 * Returns a description if a lease was lost as `expired` or `unreachable` although its validity was
 * not over. Otherwise returns undefined. Excuses a lease whose extension succeeded at this same
 * time, because the reply may have come too late for the library.
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
