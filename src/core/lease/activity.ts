import { LeaseReleasedError, ReplicationError, type ClosedError } from "../errors.ts";
import type { LeaseLostError } from "../errors.ts";
import type { Instant } from "../ports.ts";
import type { ReleaseOutcome } from "../store.ts";
import type { Lease, LeaseState } from "./lease.ts";

/** Why a lease is doubtful. */
export interface Doubt {
  readonly cause: unknown;
}

/** An extension under way. */
export interface SentRequest {
  readonly started: Instant;
  /** `doubtCountOf` the lease when it was sent. */
  readonly doubts: number;
}

/**
 * What happens to a lease beside being held: requests under way, doubt, its signal, its end.
 * perf (held): allocated when needed and dropped when idle.
 */
export interface Activity {
  controller: AbortController | undefined;
  loss: LeaseLostError | undefined;
  closed: ClosedError | undefined;
  doubt: Doubt | undefined;
  /**
   * Counts how often the store has called the lease into doubt: a server was replaced. It never
   * falls: a reply to a request that was sent before the last time confirms nothing.
   */
  doubtCount: number;
  /** True if a background renewal is under way, or queued behind an extension. */
  renewing: boolean;
  /** Starts the extension that waits for the renewal; undefined if none does. */
  afterRenewal: (() => void) | undefined;
  /** Settles after the last queued extension; never rejects. Undefined if there is none. */
  extending: Promise<void> | undefined;
  releasing: Promise<ReleaseOutcome> | undefined;
  /** True if the lease ended by its own release. */
  isReleased: boolean;
}

function newActivity(renewing: boolean): Activity {
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
    isReleased: false,
  };
}

/** perf (renew): shared by all leases whose only activity is a renewal under way. */
export const onlyRenewing: Activity = Object.freeze(newActivity(true));

/** Returns an activity that belongs to one lease, and so may be changed. */
export function ownActivity(activity: Activity | undefined): Activity {
  if (activity === undefined || activity === onlyRenewing) {
    return newActivity(activity !== undefined);
  }
  return activity;
}

/** True if no field is in use, so that the object can be dropped. */
function isIdle(activity: Activity): boolean {
  return (
    !activity.renewing &&
    activity.controller === undefined &&
    activity.loss === undefined &&
    activity.closed === undefined &&
    activity.doubt === undefined &&
    activity.doubtCount === 0 &&
    activity.extending === undefined &&
    activity.releasing === undefined
  );
}

/** Returns the state of a lease, as far as is known. perf (held): it is not stored. */
export function stateOf(activity: Activity | undefined): LeaseState {
  if (activity === undefined) return "held";
  if (activity.loss !== undefined) return "lost";
  if (activity.isReleased) return "released";
  return activity.doubt === undefined ? "held" : "doubtful";
}

/** Returns why the lease has ended; undefined if it has not, as far as is known. */
export function whyEnded(
  activity: Activity | undefined,
  { resources }: Pick<Lease, "resources">,
): Error | undefined {
  const error = activity?.loss ?? activity?.closed;
  if (error !== undefined || activity?.isReleased !== true) return error;
  return new LeaseReleasedError(resources);
}

/* ------------------------------------------------------- extensions, renewals */

/** Returns what an extension must wait for; undefined if it may start at once. */
function queueBefore(activity: Activity): Promise<void> | undefined {
  if (activity.extending !== undefined || !activity.renewing) return activity.extending;
  return new Promise((resolve) => {
    activity.afterRenewal = resolve;
  });
}

/**
 * Runs `extend` after the extensions and the renewal before it. Calls `onIdle` when the activity
 * can be dropped. One at a time: with two rounds under way, it would be unknown which of them set
 * the expiry on a node. In order: renewals that are due again must not delay the user's call.
 */
export function inTurn(
  activity: Activity,
  extend: () => Promise<void>,
  onIdle: () => void,
): Promise<void> {
  const before = queueBefore(activity);
  const extended = before === undefined ? extend() : before.then(extend);
  const settled = (): void => {
    if (activity.extending !== queue) return;
    activity.extending = undefined;
    if (isIdle(activity)) onIdle();
  };
  const queue = extended.then(settled, settled);
  activity.extending = queue;
  return extended;
}

/** Called when the renewal is over. Starts a waiting extension; returns what is still in use. */
export function withoutRenewal(activity: Activity | undefined): Activity | undefined {
  if (activity === undefined || activity === onlyRenewing) return undefined;
  activity.renewing = false;
  activity.afterRenewal?.();
  activity.afterRenewal = undefined;
  return isIdle(activity) ? undefined : activity;
}

/* ---------------------------------------------------------------------- doubt */

/** Returns the count to pass to `settleDoubt` at the reply. Read before a request is sent. */
export function doubtCountOf(activity: Activity | undefined): number {
  return activity?.doubtCount ?? 0;
}

/**
 * Clears the doubt after a confirmation. Returns an error if the count has grown since the request:
 * the server that confirmed it may be the one that was replaced.
 */
export function settleDoubt(
  activity: Activity | undefined,
  countAtRequest: number,
  resources: readonly string[],
): ReplicationError | undefined {
  if (doubtCountOf(activity) !== countAtRequest) {
    const why = "a server was replaced while the request was under way; the lease is checked again";
    return new ReplicationError("replaced", why, { cause: activity?.doubt?.cause, resources });
  }
  if (activity?.doubt !== undefined) activity.doubt = undefined;
  return undefined;
}

/* --------------------------------------------------------------------- signal */

interface Judged {
  judge(): void;
}

/**
 * Returns the signal of a lease, created at its first use.
 *
 * Problem: after a pause (a blocked event loop, a stopped process) other callbacks can run before
 * our timer does. They would see a signal that is not aborted, for a lease that is long over.
 *
 * Idea: each read of the signal checks the clocks first, and aborts it if the lease is over.
 *
 * Limit: code that only listens for `abort` is called when our timer runs, or at the next read.
 */
export function signalOf(activity: Activity, lease: Judged): AbortSignal {
  if (activity.controller === undefined) {
    activity.controller = new AbortController();
    judgeBeforeReading(activity.controller, lease);
    const over = activity.loss ?? activity.closed;
    if (over !== undefined) activity.controller.abort(over);
  }
  return activity.controller.signal;
}

/** Makes each read of `controller.signal` judge the lease first, which aborts it if it is over. */
function judgeBeforeReading(controller: AbortController, lease: Judged): void {
  const { signal } = controller;
  Object.defineProperties(signal, {
    aborted: {
      get: (): unknown => {
        lease.judge();
        return Reflect.get(AbortSignal.prototype, "aborted", signal);
      },
    },
    reason: {
      get: (): unknown => {
        lease.judge();
        return Reflect.get(AbortSignal.prototype, "reason", signal);
      },
    },
    throwIfAborted: {
      value: (): void => {
        if (signal.aborted) throw signal.reason;
      },
    },
  });
}
