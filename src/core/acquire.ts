import type { AcquireCall } from "./acquire-call.ts";
import { Backoff } from "./backoff.ts";
import { AcquireTimeoutError, QuorumError } from "./errors.ts";
import type { Emitter } from "./events.ts";
import { gapLeftMs, leaveGap } from "./gap.ts";
import type { Offer } from "./hand-over.ts";
import type { Lines } from "./lines.ts";
import type { ResolvedOptions } from "./options.ts";
import { withSelf, withSince } from "./nesting.ts";
import type { Owners } from "./owners.ts";
import type { Instant, SteadyRuntime } from "./ports.ts";
import type { Scheduler } from "./scheduler.ts";
import type { AttemptOutcome, Grant, OpenStore } from "./store.ts";
import { leftAt, now } from "./validity.ts";
import { Wait } from "./wait.ts";

export interface AcquireContext {
  readonly runtime: SteadyRuntime;
  readonly scheduler: Scheduler;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly owners: Owners;
  readonly lines: Lines;
}

/** A grant that was still valid when it was handed over. */
export interface Acquired {
  readonly grant: Grant;
  readonly started: Instant;
  readonly attempts: number;
  readonly waitedMs: number;
  /** Counted from `started`, where that is not the grant's own. */
  readonly validityMs?: number;
}

export type Refused = Exclude<AttemptOutcome, { kind: "granted" }>;

/** Longest pause between the attempts of the first waiter. Covers lost notifications. */
const askAgainMsMax = 1_000;
/** Longest pause of the waiters behind it: the store keeps a place for longer than this. */
const askRarelyMsMax = 4_000;
/** So many waiters ask when the holder's time is over; the others leave that to them. */
const eagerWaiters = 3;
/** The second of them asks so much later than the first, the third twice as much. */
const eagerStepMs = 10;

/** What came of a call's first attempt, for the call to go on from. */
export interface FirstAttempt {
  readonly started: Instant;
  readonly outcome: AttemptOutcome;
}

/**
 * One attempt, with an owner of its own. `started` was read right before: validity counts from it.
 * It is bounded by `waitEndsMs`, the end of the call's wait.
 */
export function ask(
  { owners }: AcquireContext,
  store: Pick<OpenStore, "attempt">,
  call: AcquireCall,
  started: Instant,
  waitEndsMs: number,
): Promise<AttemptOutcome> {
  const { resources, options } = call;
  const owner = owners.next(options.label);
  const { ttlMs } = options;
  return store.attempt({ resources, owner, ttlMs, started, waitEndsMs, cancellation: call });
}

/**
 * Attempts until one is granted, `wait` ends, or the call is cancelled; goes on after `first` where
 * that has been made. Resolves to a refusal only where no waiting was asked for, or where none
 * helps.
 */
export async function acquire(
  context: AcquireContext,
  call: AcquireCall,
  first?: FirstAttempt,
): Promise<Acquired | Refused> {
  const { options } = call;
  const { clock, random } = context.runtime;
  const beganMs = first?.started.monotonicMs ?? clock.monotonicMs();
  const backoff = new Backoff(random, options.retryMinMs, options.retryMaxMs);
  const waitEndsMs = beganMs + options.waitMs;
  const waitLeftMs = (): number => waitEndsMs - clock.monotonicMs();
  let made = first;
  if (made === undefined && mustLeaveGap(context, call)) await leaveGap(context, call);
  let wait =
    made === undefined && standsBehind(context, call) ? new Wait(context, call) : undefined;
  const standByMs = (): number => wait?.standByMs(waitLeftMs()) ?? 0;
  try {
    for (let attempt = 1; ; attempt += 1) {
      if (made === undefined) {
        // Not a call of its own: what a release wakes has to ask in the same turn.
        for (let ms = standByMs(); ms > 0; ms = standByMs()) await wait?.pause(ms, false);
        if (wait?.taken !== undefined) {
          return await takenOver(context, call, wait.taken, attempt - 1, beganMs);
        }
        if (call.cancelled) throw call.reason;
        if (wait?.mayAsk === false) throw timedOut(context, call, wait, attempt - 1, beganMs);
        wait?.attemptBegins();
        const started = now(clock);
        const store = wait?.store ?? context.store;
        const told = await ask(context, store, call, started, waitEndsMs);
        made = { started, outcome: checked(context, call, attempt, started, told, now(clock)) };
      }
      const { started, outcome } = made;
      made = undefined;
      if (outcome.kind === "granted") {
        if (call.cancelled) return await giveBack(context, call, outcome.grant);
        wait?.granted(outcome.grant, options.label);
        wait = undefined;
        const waitedMs = started.monotonicMs - beganMs;
        return { grant: outcome.grant, started, attempts: attempt, waitedMs };
      }
      const hopeless = outcome.kind === "failed" && !outcome.retryable;
      if (call.cancelled || hopeless || waitLeftMs() <= 0) {
        // No lock of ours is left behind when the caller learns that its wait has failed.
        void wait?.leave();
        await outcome.cleanup;
        if (call.cancelled) throw call.reason;
        if (options.waitMs === 0) return outcome;
        throw failure(context, call, outcome, attempt, clock.monotonicMs() - beganMs);
      }
      const newcomer = wait === undefined;
      wait ??= new Wait(context, call);
      if (outcome.kind === "held") wait.refused(outcome);
      // A newcomer has no place in the store's queue yet: it asks again at once, with one.
      const pauseMs =
        newcomer && wait.store !== undefined && wait.isItsTurn
          ? 0
          : Math.max(
              0,
              Math.min(pauseAfter(outcome, backoff, wait, context, options), waitLeftMs()),
            );
      tellContended(context, call, attempt, outcome, pauseMs);
      if (pauseMs > 0 && wait.isItsTurn) await wait.pause(pauseMs);
      if (call.cancelled) await outcome.cleanup;
    }
  } catch (error) {
    // The caller does not wait until the places in the queues are given up.
    call.fail(error);
    throw error;
  } finally {
    await wait?.leave();
  }
}

/** Gives back what was granted to a cancelled call, and throws the reason. */
export async function giveBack(
  { store, lines }: AcquireContext,
  call: AcquireCall,
  grant: Grant,
): Promise<never> {
  lines.over(grant);
  await store.release(grant);
  throw call.reason;
}

/** The holder before has passed it on; whoever is no longer there to have it gives it back. */
async function takenOver(
  context: AcquireContext,
  call: AcquireCall,
  { grant, started, validityMs }: Offer,
  attempts: number,
  beganMs: number,
): Promise<Acquired> {
  if (!call.cancelled) {
    return { grant, started, validityMs, attempts, waitedMs: started.monotonicMs - beganMs };
  }
  return await giveBack(context, call, grant);
}

/** Others of this manager wait for it already. Whoever does not wait takes its chance. */
function standsBehind({ lines }: AcquireContext, { resources, options }: AcquireCall): boolean {
  return options.waitMs > 0 && resources.length === 1 && lines.has(resources[0] ?? "");
}

/** True if a new call may not send its first attempt yet. */
export function mustWaitFirst(context: AcquireContext, call: AcquireCall): boolean {
  return standsBehind(context, call) || gapLeftMs(context, call) > 0;
}

/** True if calls of this manager leave what it wants free, and none of them waits for it. */
function mustLeaveGap(context: AcquireContext, call: AcquireCall): boolean {
  return gapLeftMs(context, call) > 0 && !standsBehind(context, call);
}

/**
 * If the store notifies waiters, asking covers only a lost message and a holder that died: the
 * farther back a waiter stands, the more rarely it asks. If the store does not, or rivals each got
 * a part, the pauses are random and grow; but a part may also be what a dead holder's time has left
 * so far, and the rest is free when it is over. A holder of another library notifies no waiter, and
 * its rivals poll: the first waiter does the same, and only that one.
 */
function pauseAfter(
  refused: Refused,
  backoff: Backoff,
  wait: Wait,
  { runtime }: AcquireContext,
  { retryMinMs, retryMaxMs }: ResolvedOptions,
): number {
  const retryInMs = refused.kind === "held" ? refused.retryInMs : undefined;
  if (wait.store === undefined || retryInMs === undefined) return backoff.nextMs();
  const spread = 0.75 + runtime.random.fraction() / 2;
  if (isFirstBehindForeigner(refused)) return Math.min(retryInMs + spread, retryMinMs * spread);
  const isSplit = refused.kind === "held" && refused.split === true;
  const rank = (refused.kind === "held" ? refused.rank : undefined) ?? 0;
  const askEveryMs = Math.min(Math.min(retryMaxMs, askAgainMsMax) * (rank + 1), askRarelyMsMax);
  const mostMs = isSplit ? backoff.nextMs() : askEveryMs * spread;
  // No holder: it is free, and kept for the first waiter. Few learn of that, so all of them return.
  const isFree = refused.kind === "held" && refused.holder === undefined;
  if (rank >= eagerWaiters && !isFree) return mostMs;
  const afterMs = Math.min(rank, eagerWaiters) * eagerStepMs;
  return Math.min(retryInMs + spread * (1 + afterMs), mostMs);
}

function isFirstBehindForeigner(refused: Refused): boolean {
  return refused.kind === "held" && refused.rank === 0 && refused.holder?.foreign === true;
}

function timedOut(
  context: AcquireContext,
  { resources }: AcquireCall,
  wait: Wait,
  attempts: number,
  beganMs: number,
): AcquireTimeoutError {
  const waitedMs = context.runtime.clock.monotonicMs() - beganMs;
  const votes = wait.votes?.();
  const holder = withSince(context, resources, wait.holder);
  return new AcquireTimeoutError(resources, { attempts, waitedMs, holder, votes });
}

/** What the caller of a failed wait is told: contention and faults are never the same error. */
export function failure(
  context: AcquireContext,
  { resources }: AcquireCall,
  refused: Refused,
  attempts: number,
  waitedMs: number,
): Error {
  if (refused.kind === "failed") return refused.error;
  const { votes } = refused;
  const holder = withSince(context, resources, refused.holder);
  return new AcquireTimeoutError(resources, { attempts, waitedMs, holder, votes: votes?.() });
}

/**
 * What an attempt's outcome is worth when it is `heard`, and tells of it. The store checks validity
 * too; this is the other side of the boundary.
 */
export function checked(
  context: AcquireContext,
  call: AcquireCall,
  attempt: number,
  started: Instant,
  told: AttemptOutcome,
  heard: Instant,
): AttemptOutcome {
  const isOver = told.kind === "granted" && leftAt(heard, started, told.grant.validityMs) < 1;
  const outcome = isOver ? tooLate(context.store, told.grant) : told;
  if (context.events.wants("attempt")) {
    context.events.emit("attempt", {
      resources: call.resources,
      label: call.options.label,
      attempt,
      outcome: outcome.kind,
      elapsedMs: heard.monotonicMs - started.monotonicMs,
      error: outcome.kind === "failed" ? outcome.error : undefined,
    });
  }
  return outcome;
}

function tooLate(store: OpenStore, grant: Grant): AttemptOutcome {
  const cleanup = store.release(grant).then(() => undefined);
  const error = new QuorumError("acquire", grant.resources, [], {
    quorum: 0,
    hint: "It was granted, but the validity was over before it could be handed out",
  });
  return { kind: "failed", error, retryable: true, cleanup };
}

function tellContended(
  context: AcquireContext,
  { resources, options: { label } }: AcquireCall,
  attempt: number,
  refused: Refused,
  retryInMs: number,
): void {
  if (refused.kind !== "held" || !context.events.wants("contended")) return;
  const holder = withSelf(context, refused.holder);
  context.events.emit("contended", { resources, label, attempt, holder, retryInMs });
}
