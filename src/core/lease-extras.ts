import type { Doubt } from "./doubt.ts";
import type { ClosedError, LeaseLostError } from "./errors.ts";
import type { ReleaseOutcome } from "./store.ts";

/** What a lease that is quietly held does not need, and so keeps no memory for. */
export interface LeaseExtras {
  controller: AbortController | undefined;
  loss: LeaseLostError | undefined;
  closed: ClosedError | undefined;
  doubt: Doubt | undefined;
  /** The end of the line of extensions; never rejects. Undefined while there is none. */
  extending: Promise<void> | undefined;
  releasing: Promise<ReleaseOutcome> | undefined;
}

/** Nothing is in it that would have to be remembered. */
export function isIdle(extras: LeaseExtras): boolean {
  const { controller, loss, closed, doubt, extending, releasing } = extras;
  return [controller, loss, closed, doubt, extending, releasing].every((it) => it === undefined);
}

export function newExtras(): LeaseExtras {
  return {
    controller: undefined,
    loss: undefined,
    closed: undefined,
    doubt: undefined,
    extending: undefined,
    releasing: undefined,
  };
}
