import type { History } from "../history.ts";
import type { BrokenWindow } from "./assumptions.ts";
import type { Model, Operation } from "./linearizability.ts";
import type { Span } from "./spans.ts";

/** Operation on one lock, as a client saw it. */
export type LockInput =
  /** `fence` is undefined if nothing is promised for it. */
  | { readonly kind: "acquire"; readonly lease: string; readonly fence: bigint | undefined }
  /** A quorum extended or proved the lease. */
  | { readonly kind: "confirm"; readonly lease: string }
  /** The lease ended: it was released or lost, or its holder died. */
  | { readonly kind: "end"; readonly lease: string };

interface LockState {
  readonly holder: string | undefined;
  readonly fence: bigint;
}

/** A lock with one holder at a time, and fences that grow with each holder. */
export const lockModel: Model<LockState, LockInput> = {
  initial: { holder: undefined, fence: 0n },
  step(state, input) {
    if (input.kind === "confirm") return state.holder === input.lease ? state : undefined;
    if (input.kind === "end") {
      return state.holder === input.lease ? { ...state, holder: undefined } : undefined;
    }
    if (state.holder !== undefined) return undefined;
    const { lease, fence = state.fence } = input;
    if (input.fence !== undefined && fence <= state.fence) return undefined;
    return { holder: lease, fence };
  },
  keyOf: ({ holder = "", fence }) => `${fence} ${holder}`,
};

/**
 * Returns the operations on the lock of `resource`. A lease ends at some moment after its span of
 * trust. It may end right after the grant if an assumption was broken while it was held.
 */
export function lockOperations(
  { events }: History,
  spans: readonly Span[],
  windows: readonly BrokenWindow[],
  resource: string,
): Operation<LockInput>[] {
  const mine = spans.filter((span) => span.resource === resource);
  const broken = windows.filter(({ assumption }) => assumption !== "data");
  const isSafe = ({ startedMs, toMs }: Span): boolean =>
    broken.every((window) => toMs < window.fromMs || startedMs > window.toMs);
  const safe = new Map(mine.filter(isSafe).map((span) => [span.lease, span]));
  const operations = mine.flatMap((span): Operation<LockInput>[] => {
    const { lease, startedMs, fromMs, toMs, fence } = span;
    const endsFromMs = safe.has(lease) ? Math.max(fromMs, toMs) : fromMs;
    const input = { kind: "acquire", lease, fence } as const;
    return [
      {
        name: `${lease} acquires ${fence ?? "it"}`,
        fromMs: startedMs,
        toMs: fromMs,
        isCertain: true,
        input,
      },
      {
        name: `${lease} ends`,
        fromMs: endsFromMs,
        toMs: Infinity,
        isCertain: false,
        input: { kind: "end", lease },
      },
    ];
  });
  for (const event of events) {
    if (event.what !== "extend" && event.what !== "prove") continue;
    const { lease, outcome, startedMs, t: toMs } = event;
    const isConfirmed = outcome === "extended" || outcome === "proven";
    if (!isConfirmed || startedMs === undefined || !safe.has(lease)) continue;
    const name = `${lease} is confirmed`;
    operations.push({
      name,
      fromMs: startedMs,
      toMs,
      isCertain: true,
      input: { kind: "confirm", lease },
    });
  }
  return operations;
}
