import { LeaseLostError, type LossReason } from "../errors.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Lease } from "./lease.ts";

type Settled<Result> =
  | { readonly ok: true; readonly result: Result }
  | { readonly ok: false; readonly error: unknown };

/**
 * Runs `work` under a lease that was just granted, then releases it. Never reports success for work
 * that outlived its lease, and never hides the work's own error.
 */
export async function runUsing<Result>(
  lease: HeldLease,
  work: (lease: Lease) => Result | PromiseLike<Result>,
): Promise<Result> {
  const settled = await settle(lease, work);
  // Reads the state before the release. Otherwise a slow release could report work that finished in
  // time as lost.
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
  // Compares the two error objects, because the work may also fail with the loss of another lease.
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
 * Returns why the lease was lost while the work ran; undefined if it was not. The outcome `taken`
 * of the release is a loss that no clock shows: for example, the key was flushed or evicted. A
 * release without a reply does not count as a loss.
 */
function lossReason(
  lost: unknown,
  outcome: Awaited<ReturnType<Lease["release"]>>,
): LossReason | undefined {
  if (lost instanceof LeaseLostError) return lost.reason;
  return !outcome.released && outcome.reason === "taken" ? "taken" : undefined;
}
