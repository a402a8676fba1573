import { LeaseLostError, type LossReason } from "./errors.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Lease } from "./lease.ts";

type Settled<Result> =
  | { readonly ok: true; readonly result: Result }
  | { readonly ok: false; readonly error: unknown };

/**
 * Runs `work` under a lease that was just granted, and gives it back. Never reports success for
 * work that ran outside its lease, and never hides the work's own error.
 */
export async function runUsing<Result>(
  lease: HeldLease,
  work: (lease: Lease) => Result | PromiseLike<Result>,
): Promise<Result> {
  const settled = await settle(lease, work);
  // Asked before the release, so that a slow release cannot turn finished work into lost work.
  const lost = lease.state === "lost" ? lease.signal.reason : undefined;
  const outcome = await lease.release();
  const reason = lossReason(lost, outcome);
  if (reason === undefined) {
    if (!settled.ok) throw settled.error;
    if (lease.closed !== undefined) throw lease.closed;
    return settled.result;
  }
  const loss = lost instanceof LeaseLostError ? lost : undefined;
  if (settled.ok) {
    const { result } = settled;
    throw new LeaseLostError(lease.resources, reason, { result, cause: loss?.cause });
  }
  // By identity: the work may also fail with the loss of another lease, which says nothing of ours.
  if (loss !== undefined && settled.error === loss) throw loss;
  throw new LeaseLostError(lease.resources, reason, { cause: settled.error });
}

async function settle<Result>(
  lease: HeldLease,
  work: (lease: Lease) => Result | PromiseLike<Result>,
): Promise<Settled<Result>> {
  try {
    return { ok: true, result: await work(lease) };
  } catch (error) {
    return { ok: false, error };
  }
}

/**
 * A release that finds the lease taken means that it was lost while the work ran, though no clock
 * could tell (a flushed or evicted key). One that could not be confirmed proves no such thing.
 */
function lossReason(
  lost: unknown,
  outcome: Awaited<ReturnType<Lease["release"]>>,
): LossReason | undefined {
  if (lost instanceof LeaseLostError) return lost.reason;
  return !outcome.released && outcome.reason === "taken" ? "taken" : undefined;
}
