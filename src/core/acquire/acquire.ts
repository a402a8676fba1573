import type { AcquireCall } from "./acquire-call.ts";
import { Backoff } from "./backoff.ts";
import { AcquireTimeoutError, QuorumError } from "../errors.ts";
import type { Emitter } from "../events.ts";
import { gapRemainingMs, leaveGap } from "./gap.ts";
import type { Offer } from "./hand-over.ts";
import type { Lines } from "./lines.ts";
import type { ResolvedOptions } from "../options.ts";
import { withSelf, withSince } from "./nesting.ts";
import type { Owners } from "./owners.ts";
import type { Instant, SteadyRuntime } from "../ports.ts";
import type { TimerScheduler } from "../time/scheduler.ts";
import type { AttemptOutcome, Grant, OpenStore } from "../store.ts";
import { leftAt, now } from "../time/validity.ts";
import { Wait } from "./wait.ts";

/**
 * Problem: a held resource must be waited for with few requests, and a grant is worth something
 * only if it is still valid when its reply arrives.
 *
 * Idea: a loop of attempts. Each has a new owner, and its validity counts from before it is sent.
 * Between attempts the call pauses until this manager releases the resource (`lines.ts`), the
 * store notifies it, the holder's lease should be over, or a timer ends. The timer covers lost
 * messages. A waiter further back has longer pauses.
 *
 * Limits: calls of one manager are served in order for a single resource only. When the loop ends,
 * it waits until the store has deleted what the last attempt left.
 */

/** Parts of the manager that attempts and waits use. */
export interface AcquireContext {
  readonly runtime: SteadyRuntime;
  readonly scheduler: TimerScheduler;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly owners: Owners;
  readonly lines: Lines;
}

/** A grant that was still valid when the call received it. */
export interface Acquired {
  readonly grant: Grant;
  readonly started: Instant;
  readonly attempts: number;
  readonly waitedMs: number;
  /** Validity from `started`. Set after a hand-over, when it is less than the grant's own. */
  readonly validityMs?: number;
}

export type Refused = Exclude<AttemptOutcome, { kind: "granted" }>;

/** Longest pause between the attempts of the first waiter. Covers lost notifications. */
const askAgainMsMax = 1_000;
/** Longest pause of the waiters behind it. The store keeps a queue entry for longer than this. */
const askRarelyMsMax = 4_000;
/** Number of waiters that send an attempt when the holder's lease should be over. */
const eagerWaiters = 3;
/** Delay of the second of them after the first, and of the third after the second. */
const eagerStepMs = 10;

/** Outcome of a call's first attempt, if it was made before the loop. */
export interface FirstAttempt {
  readonly started: Instant;
  readonly outcome: AttemptOutcome;
}

/** Sends one attempt under a new owner. Validity counts from `started`: read it right before. */
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
 * Sends attempts until one is granted, `wait` ends or the call is cancelled. Continues after
 * `first` if that was made. Returns a refusal only if `wait` is 0, otherwise rejects.
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
        // perf (contended): inlined. One more promise, and the attempt misses the release's call.
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
        // Deletes what the attempt left in the store before the caller gets the error.
        void wait?.leave();
        await outcome.cleanup;
        if (call.cancelled) throw call.reason;
        if (options.waitMs === 0) return outcome;
        throw failure(context, call, outcome, attempt, clock.monotonicMs() - beganMs);
      }
      const newcomer = wait === undefined;
      wait ??= new Wait(context, call);
      if (outcome.kind === "held") wait.refused(outcome);
      // The first attempt took no entry in the store's queue. The next one does, without a pause.
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
    // Rejects the caller now. Leaving the store's queue below may take a node timeout.
    call.fail(error);
    throw error;
  } finally {
    await wait?.leave();
  }
}

/** Releases what was granted to a cancelled call, and throws the reason. */
export async function giveBack(
  { store, lines }: AcquireContext,
  call: AcquireCall,
  grant: Grant,
): Promise<never> {
  lines.over(grant);
  await store.release(grant);
  throw call.reason;
}

/** Accepts a lock that the previous holder handed over. A cancelled call releases it. */
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

/** True if calls of this manager already wait for the resource. Calls with `wait: 0` go ahead. */
function standsBehind({ lines }: AcquireContext, { resources, options }: AcquireCall): boolean {
  return options.waitMs > 0 && resources.length === 1 && lines.has(resources[0] ?? "");
}

/** True if a new call must wait before its first attempt: behind other calls, or for a gap. */
export function mustWaitFirst(context: AcquireContext, call: AcquireCall): boolean {
  return standsBehind(context, call) || gapRemainingMs(context, call) > 0;
}

/** True if a gap is open (`gap.ts`) and no call of this manager waits for the resource. */
function mustLeaveGap(context: AcquireContext, call: AcquireCall): boolean {
  return gapRemainingMs(context, call) > 0 && !standsBehind(context, call);
}

/**
 * Returns the pause before the next attempt. It is random and grows if the store does not notify
 * waiters, or if rivals each have some nodes. Otherwise it ends with the holder's lease, with a
 * limit that grows with the rank. If a client of another library holds it, the first waiter polls.
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
  // Free, but reserved for the first waiter. Few are notified when that ends, so all retry then.
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

/** Returns the error of a failed wait: the store's own for a fault, a timeout for contention. */
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

/** Re-checks the validity at `heard`, when the reply arrived, and emits the `attempt` event. */
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
