import type { Assumptions } from "../assumptions.ts";
import type { GrantRecord, History, TenureRecord, Violation } from "../history.ts";
import { checkConfirmations } from "./confirmations.ts";
import { checkFences } from "./fences.ts";
import { checkMutex, fencedMutex, ownerAwareMutex } from "./mutex-models.ts";

/** Returns all violations in a history, except those that a broken assumption excuses. */
export function judge(history: History, assumptions: Assumptions): Violation[] {
  const epochOf = ({ startedMs, completedMs }: GrantRecord): number | undefined => {
    const epoch = assumptions.fenceEpoch(startedMs);
    return epoch === assumptions.fenceEpoch(completedMs) ? epoch : undefined;
  };
  const sound = history.tenures.filter(({ acquiredMs, trustedUntilMs }) =>
    assumptions.exclusionHeld(acquiredMs, trustedUntilMs),
  );
  return [
    ...checkFences(history.grants, epochOf),
    ...checkConfirmations(history.confirmations ?? [], history.grants, (atMs) =>
      assumptions.fenceEpoch(atMs),
    ),
    ...checkMutex(ownerAwareMutex, sound),
    ...fencedByEpoch(sound, assumptions),
  ];
}

function fencedByEpoch(tenures: readonly TenureRecord[], assumptions: Assumptions): Violation[] {
  const epochs = new Map<number, TenureRecord[]>();
  for (const tenure of tenures) {
    if (tenure.fence === undefined) continue;
    const epoch = assumptions.fenceEpoch(tenure.startedMs);
    if (epoch !== assumptions.fenceEpoch(tenure.acquiredMs)) continue;
    const group = epochs.get(epoch);
    if (group === undefined) epochs.set(epoch, [tenure]);
    else group.push(tenure);
  }
  return [...epochs.values()].flatMap((group) => checkMutex(fencedMutex, group));
}
