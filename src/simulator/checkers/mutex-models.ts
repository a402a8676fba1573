import type { TenureRecord, Violation } from "../history.ts";

/**
 * Mutex as a state machine. A step returns undefined if the model does not allow it. A tenure is
 * the time span in which one holder has the mutex.
 */
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

/** Mutex that is free or held. Only the holder can end its own tenure. */
export const ownerAwareMutex: MutexModel<Held> = {
  name: "owner-aware mutex",
  start: { holder: undefined, lastFence: -1n },
  acquire: ({ holder, lastFence }, tenure) =>
    holder === undefined ? { holder: tenure, lastFence } : undefined,
  end: ({ holder, lastFence }, tenure) =>
    holder === tenure ? { holder: undefined, lastFence } : undefined,
};

/** Owner-aware mutex in which each holder has a greater fence than all earlier holders. */
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
 * Checks that the model allows at least one order of all acquires and ends that agrees with time.
 *
 * An acquire takes effect between its start and its return. An end takes effect no earlier than the
 * last moment at which the client reported the lease as held. The order with the latest time for
 * each acquire and the earliest time for each end is the easiest order to satisfy. If the model
 * refuses this order, it refuses every order.
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

/** Orders steps at the same time: the end of the old holder comes before a new acquire. */
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
