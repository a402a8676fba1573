import { LeaseReleasedError, ReplicationError, type ClosedError } from "../errors.ts";
import type { LeaseLostError } from "../errors.ts";
import type { Instant } from "../ports.ts";
import { withCallerFrames } from "../report/caller-frames.ts";
import type { ReleaseOutcome } from "../store.ts";
import type { Lease, LeaseState } from "./lease.ts";

/** Cause that made a lease doubtful. */
export interface Doubt {
  readonly cause: unknown;
}

/** Extension request that is under way. */
export interface SentRequest {
  readonly started: Instant;
  /** Value of `doubtCount` when the request was sent. Its reply does not clear a later doubt. */
  readonly doubts: number;
}

/**
 * Details that only some leases need: requests under way, doubt, the signal, the end. perf (held):
 * a lease allocates this object when needed, and drops it when idle.
 */
export interface Activity {
  controller: AbortController | undefined;
  loss: LeaseLostError | undefined;
  closed: ClosedError | undefined;
  doubt: Doubt | undefined;
  /**
   * Number of times that the store has made the lease doubtful because a server was replaced. The
   * count never falls. A reply confirms the lease only if the count has not grown since the
   * request.
   */
  doubtCount: number;
  /** True if a background renewal is under way, or queued behind an extension. */
  renewing: boolean;
  /** Starts the extension that waits for the end of the renewal. Undefined if none waits. */
  afterRenewal: (() => void) | undefined;
  /**
   * Settles after the last queued extension, never rejects. Undefined if no extension is queued.
   */
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

/**
 * Activity of a lease that only has a renewal under way. perf (renew): all these leases share it.
 */
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

/**
 * Returns the state that the lease had at the last check of the clocks. perf (held): the state is
 * computed and not stored.
 */
export function stateOf(activity: Activity | undefined): LeaseState {
  if (activity === undefined) return "held";
  if (activity.loss !== undefined) return "lost";
  if (activity.isReleased) return "released";
  return activity.doubt === undefined ? "held" : "doubtful";
}

/** Returns why the lease has ended, or undefined if it has not. Does not read the clocks. */
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
 * Runs `extend` after all earlier extensions and a renewal under way. Calls `onIdle` when the
 * activity can be dropped.
 *
 * Extensions run one at a time: with two rounds under way, it would be unknown which of them set
 * the expiry on a node. They run in the order of their calls, so that renewals which are due again
 * do not delay the user's extension.
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
  return extended.catch(withCallerFrames);
}

/**
 * Called when the renewal is over. Starts an extension that waits for that. Returns the activity,
 * or undefined if it can be dropped.
 */
export function withoutRenewal(activity: Activity | undefined): Activity | undefined {
  if (activity === undefined || activity === onlyRenewing) return undefined;
  activity.renewing = false;
  activity.afterRenewal?.();
  activity.afterRenewal = undefined;
  return isIdle(activity) ? undefined : activity;
}

/* ---------------------------------------------------------------------- doubt */

/**
 * Returns the doubt count. The caller reads it before a request is sent, and passes it to
 * `settleDoubt` after the reply.
 */
export function doubtCountOf(activity: Activity | undefined): number {
  return activity?.doubtCount ?? 0;
}

/**
 * Clears the doubt after the store has confirmed the lease. Returns an error if the doubt count has
 * grown since the request: the confirmation may come from the server that was replaced.
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
 * our timer does. They would read a signal that is not aborted, for a lease that is long over.
 *
 * Idea: each read of the signal first checks the clocks, and aborts the signal if the lease is
 * over.
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

/**
 * Makes each read of a property of the signal first call `lease.judge()`. That aborts the signal if
 * the lease is over.
 */
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
