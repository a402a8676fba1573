import type { ConfirmationRecord, GrantRecord, Violation } from "../history.ts";

/**
 * Checks that no lease is confirmed after another client was granted the resource with a greater
 * fence: every quorum has a node that stored the other grant. The rule does not depend on clocks.
 * It depends on fence counters, so it compares only times of one epoch: a span without a loss of
 * counters.
 */
export function checkConfirmations(
  confirmations: readonly ConfirmationRecord[],
  grants: readonly GrantRecord[],
  epochOf: (atMs: number) => number,
): Violation[] {
  const fenced = grants.filter(({ fence }) => fence !== undefined);
  return confirmations.flatMap((confirmation) => {
    const { client, resources, fence, grantedMs, startedMs } = confirmation;
    if (fence === undefined || epochOf(grantedMs) !== epochOf(startedMs)) return [];
    const newer = fenced.find(
      (grant) =>
        grant.fence !== undefined &&
        grant.fence > fence &&
        grant.completedMs < startedMs &&
        epochOf(grant.startedMs) === epochOf(startedMs) &&
        grant.resources.some((resource) => resources.includes(resource)),
    );
    if (newer === undefined) return [];
    const askedAt = `${startedMs.toFixed(3)} ms`;
    const text =
      `${client} received a confirmation of fence ${fence}, requested at ${askedAt}, ` +
      `though ${newer.client} had ${newer.fence} since ${newer.completedMs.toFixed(3)} ms`;
    return [{ rule: "stale-confirmation" as const, atMs: startedMs, text }];
  });
}
