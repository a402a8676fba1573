import type { ResolvedOptions } from "../options.ts";
import type { Clock } from "../ports.ts";
import type { AttemptOutcome } from "../store.ts";

interface WaitSoFar {
  readonly beganMs: number;
  readonly waitEndsMs: number;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** Time for the nodes to be admitted after their countdown. */
const admissionMs = 2_000;

/**
 * Returns the end of a wait after a refusal. Brand-new nodes vote only after a countdown, which is
 * longer than the default wait: a call without a `wait` of its own lasts until they may vote. It is
 * prolonged once, so that nodes that restart again and again do not keep it waiting.
 */
export function waitEndsAfter(
  outcome: AttemptOutcome,
  { waitMs, isDefaultWait }: Pick<ResolvedOptions, "waitMs" | "isDefaultWait">,
  { beganMs, waitEndsMs, clock }: WaitSoFar,
): number {
  const { votesInMs = 0 } = outcome.kind === "failed" ? outcome : {};
  const isProlonged = waitEndsMs !== beganMs + waitMs;
  if (!isDefaultWait || waitMs === 0 || votesInMs <= 0 || isProlonged) return waitEndsMs;
  return Math.max(waitEndsMs, clock.monotonicMs() + votesInMs + admissionMs);
}
