import type { TenureRecord, Violation } from "../history.ts";

/** A mutex as a state machine; `undefined` for a step that it does not allow. */
export interface MutexModel<State> {
  readonly name: string;
  readonly start: State;
  acquire(state: State, tenure: TenureRecord): State | undefined;
  end(state: State, tenure: TenureRecord): State | undefined;
}

interface Held {
  readonly holder: TenureRecord | undefined;
  readonly lastFence: bigint;
}

/** Free, or held by the one who took it; only that one can end it. */
export const ownerAwareMutex: MutexModel<Held> = {
  name: "owner-aware mutex",
  start: { holder: undefined, lastFence: -1n },
  acquire: ({ holder, lastFence }, tenure) =>
    holder === undefined ? { holder: tenure, lastFence } : undefined,
  end: ({ holder, lastFence }, tenure) =>
    holder === tenure ? { holder: undefined, lastFence } : undefined,
};

/** The same, and every holder has a greater fence than all before it. */
export const fencedMutex: MutexModel<Held> = {
  name: "fenced mutex",
  start: ownerAwareMutex.start,
  acquire: ({ holder, lastFence }, tenure) => {
    if (holder !== undefined || tenure.fence === undefined) return undefined;
    return tenure.fence > lastFence ? { holder: tenure, lastFence: tenure.fence } : undefined;
  },
  end: (state, tenure) => ownerAwareMutex.end(state, tenure),
};

interface Step {
  readonly kind: "acquire" | "end";
  readonly tenure: TenureRecord;
  readonly atMs: number;
}

/**
 * Is there an order of all acquisitions and ends that the model allows and that agrees with time?
 * An acquisition takes effect between its start and its return, an end not before the client last
 * said that it held. Taking the latest moment for the one and the earliest for the other leaves
 * each the least to exclude: if that order fails, every order does.
 */
export function checkMutex<State>(
  model: MutexModel<State>,
  tenures: readonly TenureRecord[],
): Violation[] {
  const found: Violation[] = [];
  for (const resource of new Set(tenures.map((tenure) => tenure.resource))) {
    const steps = tenures
      .filter((tenure) => tenure.resource === resource)
      .flatMap((tenure): Step[] => [
        { kind: "acquire", tenure, atMs: tenure.acquiredMs },
        { kind: "end", tenure, atMs: tenure.trustedUntilMs },
      ])
      .sort((a, b) => a.atMs - b.atMs || order(a) - order(b));
    const failed = firstRefused(model, steps);
    if (failed !== undefined) {
      const { tenure, kind, atMs } = failed;
      const text = `${model.name}: no order allows the ${kind} of ${resource} by ${tenure.client}`;
      found.push({ rule: "mutex-model", atMs, text: `${text} (fence ${tenure.fence})` });
    }
  }
  return found;
}

/** At one and the same moment the old holder goes before the new one comes. */
function order(step: Step): number {
  const isInstant = step.tenure.acquiredMs === step.tenure.trustedUntilMs;
  return step.kind === "end" && !isInstant ? 0 : 1;
}

function firstRefused<State>(model: MutexModel<State>, steps: readonly Step[]): Step | undefined {
  let state = model.start;
  for (const step of steps) {
    const next = model[step.kind](state, step.tenure);
    if (next === undefined) return step;
    state = next;
  }
  return undefined;
}
