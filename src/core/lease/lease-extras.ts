import type { Doubt } from "./doubt.ts";
import { LeaseReleasedError, type ClosedError, type LeaseLostError } from "../errors.ts";
import type { Lease, LeaseState } from "./lease.ts";
import type { ReleaseOutcome } from "../store.ts";

/** Rare state of a lease. perf (held): allocated when needed and dropped when idle. */
export interface LeaseExtras {
  controller: AbortController | undefined;
  loss: LeaseLostError | undefined;
  closed: ClosedError | undefined;
  doubt: Doubt | undefined;
  /** Number of times a server was replaced under the lease. */
  doubtCount: number;
  /** True if a background renewal is under way, or queued behind an extension. */
  renewing: boolean;
  /** Starts the extension that waits for the renewal; undefined if none does. */
  afterRenewal: (() => void) | undefined;
  /** Settles after the last queued extension; never rejects. Undefined if there is none. */
  extending: Promise<void> | undefined;
  releasing: Promise<ReleaseOutcome> | undefined;
}

/** True if no field is in use, so that the object can be dropped. */
function isIdle(extras: LeaseExtras): boolean {
  return (
    !extras.renewing &&
    extras.controller === undefined &&
    extras.loss === undefined &&
    extras.closed === undefined &&
    extras.doubt === undefined &&
    extras.doubtCount === 0 &&
    extras.extending === undefined &&
    extras.releasing === undefined
  );
}

/** True if no renewal and no extension is under way. */
export function isQuiet(extras: LeaseExtras | undefined): boolean {
  return extras === undefined || (!extras.renewing && extras.extending === undefined);
}

/** Returns why the lease has ended; undefined if it has not, as far as is known. */
export function whyEnded(
  extras: LeaseExtras | undefined,
  state: LeaseState,
  { resources }: Pick<Lease, "resources">,
): Error | undefined {
  const told = extras?.loss ?? extras?.closed;
  if (told !== undefined || state !== "released") return told;
  return new LeaseReleasedError(resources);
}

function newExtras(renewing: boolean): LeaseExtras {
  return {
    controller: undefined,
    loss: undefined,
    closed: undefined,
    doubt: undefined,
    doubtCount: 0,
    renewing,
    afterRenewal: undefined,
    extending: undefined,
    releasing: undefined,
  };
}

/** perf (renew): shared by all leases whose only extra is a renewal under way. */
export const onlyRenewing: LeaseExtras = Object.freeze(newExtras(true));

/** Returns what an extension must wait for; undefined if it may start at once. */
function lineBefore(extras: LeaseExtras): Promise<void> | undefined {
  if (extras.extending !== undefined || !extras.renewing) return extras.extending;
  return new Promise((resolve) => {
    extras.afterRenewal = resolve;
  });
}

/**
 * Runs `extend` after the extensions and the renewal before it. Calls `onIdle` when the extras can
 * be dropped. One at a time: with two rounds under way, it would be unknown which of them set the
 * expiry on a node. In order: renewals that are due again must not delay the user's call.
 */
export function inTurn(
  extras: LeaseExtras,
  extend: () => Promise<void>,
  onIdle: () => void,
): Promise<void> {
  const before = lineBefore(extras);
  const turn = before === undefined ? extend() : before.then(extend);
  const settled = (): void => {
    if (extras.extending !== line) return;
    extras.extending = undefined;
    if (isIdle(extras)) onIdle();
  };
  const line = turn.then(settled, settled);
  extras.extending = line;
  return turn;
}

/** Returns extras that belong to one lease, and so may be changed. */
export function ownExtras(extras: LeaseExtras | undefined): LeaseExtras {
  if (extras === undefined || extras === onlyRenewing) return newExtras(extras !== undefined);
  return extras;
}

/** Called when the renewal is over. Starts a waiting extension; returns extras still in use. */
export function withoutRenewal(extras: LeaseExtras | undefined): LeaseExtras | undefined {
  if (extras === undefined || extras === onlyRenewing) return undefined;
  extras.renewing = false;
  extras.afterRenewal?.();
  extras.afterRenewal = undefined;
  return isIdle(extras) ? undefined : extras;
}
