import type { Doubt } from "./doubt.ts";
import { LeaseReleasedError, type ClosedError, type LeaseLostError } from "./errors.ts";
import type { Lease, LeaseState } from "./lease.ts";
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
function isIdle(extras: LeaseExtras): boolean {
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

/** No question of the holder's to the store is under way. */
export function isQuiet(extras: LeaseExtras | undefined): boolean {
  return extras === undefined || (!extras.renewing && extras.extending === undefined);
}

/** Why the lease is no longer held, if it is known to be so. */
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
    renewing,
    afterRenewal: undefined,
    extending: undefined,
    releasing: undefined,
  };
}

/** Shared by all leases of which nothing is to be remembered but that a renewal is under way. */
export const onlyRenewing: LeaseExtras = Object.freeze(newExtras(true));

/** What an extension has to wait for before it is its turn; undefined where it is. */
function lineBefore(extras: LeaseExtras): Promise<void> | undefined {
  if (extras.extending !== undefined || !extras.renewing) return extras.extending;
  return new Promise((resolve) => {
    extras.afterRenewal = resolve;
  });
}

/**
 * Runs `extend` when it is its turn, and tells when nothing is left to remember. One at a time: two
 * rounds under way could not tell which of them set the nodes' clocks. And in order: renewals that
 * are due again at once must not keep the user's own call waiting.
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
