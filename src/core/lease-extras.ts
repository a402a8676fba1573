import type { Doubt } from "./doubt.ts";
import type { ClosedError, LeaseLostError } from "./errors.ts";
import type { ReleaseOutcome } from "./store.ts";

/** What a lease that is quietly held does not need, and so keeps no memory for. */
export interface LeaseExtras {
  controller: AbortController | undefined;
  loss: LeaseLostError | undefined;
  closed: ClosedError | undefined;
  doubt: Doubt | undefined;
  /** A renewal in the background is under way, or stands in the line. */
  renewing: boolean;
  /** Whoever waits for that renewal, where it has no other line. */
  afterRenewal: (() => void) | undefined;
  /** The end of the line of extensions; never rejects. Undefined while there is none. */
  extending: Promise<void> | undefined;
  releasing: Promise<ReleaseOutcome> | undefined;
}

/** Nothing is in it that would have to be remembered. */
export function isIdle(extras: LeaseExtras): boolean {
  return (
    !extras.renewing &&
    extras.controller === undefined &&
    extras.loss === undefined &&
    extras.closed === undefined &&
    extras.doubt === undefined &&
    extras.extending === undefined &&
    extras.releasing === undefined
  );
}

function newExtras(renewing: boolean): LeaseExtras {
  return {
    controller: undefined,
    loss: undefined,
    closed: undefined,
    doubt: undefined,
    renewing,
    afterRenewal: undefined,
    extending: undefined,
    releasing: undefined,
  };
}

/** Shared by all leases of which nothing is to be remembered but that a renewal is under way. */
export const onlyRenewing: LeaseExtras = Object.freeze(newExtras(true));

/** What an extension has to wait for before it is its turn; undefined where it is. */
export function lineBefore(extras: LeaseExtras): Promise<void> | undefined {
  if (extras.extending !== undefined || !extras.renewing) return extras.extending;
  return new Promise((resolve) => {
    extras.afterRenewal = resolve;
  });
}

/** Such as are the lease's own, to be written to. */
export function ownExtras(extras: LeaseExtras | undefined): LeaseExtras {
  if (extras === undefined || extras === onlyRenewing) return newExtras(extras !== undefined);
  return extras;
}

/** The renewal is over: whoever waited for it is next. Returns what is still to be remembered. */
export function withoutRenewal(extras: LeaseExtras | undefined): LeaseExtras | undefined {
  if (extras === undefined || extras === onlyRenewing) return undefined;
  extras.renewing = false;
  extras.afterRenewal?.();
  extras.afterRenewal = undefined;
  return isIdle(extras) ? undefined : extras;
}
