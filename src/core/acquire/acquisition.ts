import { Backoff, type Refused } from "./backoff.ts";
import { CallCancellation } from "./cancellation.ts";
import { waitEndsAfter } from "./countdown.ts";
import { AcquireTimeoutError, QuorumError, type Holder, type Vote } from "../errors.ts";
import type { Emitter } from "../events.ts";
import type { HeldLease } from "../lease/held-lease.ts";
import type { Keeper } from "../lease/keeper.ts";
import type { LocalQueues } from "./local-queue.ts";
import type { ResolvedOptions } from "../options.ts";
import { withCallerFrames } from "../report/caller-frames.ts";
import type { Owners } from "../owners.ts";
import type { Instant, SteadyRuntime } from "../ports.ts";
import type { AttemptOutcome, Grant, OpenStore } from "../store.ts";
import { leftAt } from "../time/instant.ts";
import type { TimerScheduler } from "../time/scheduler.ts";
import { leaveGap, Waiter } from "./waiter.ts";

/**
 * Problem: a call must wait for a held resource with few requests, and a grant is useful only if it
 * is still valid when its reply arrives.
 *
 * Idea: a loop of attempts. Each attempt has a new owner, and its validity counts from before it is
 * sent. Usually the first attempt is granted. Otherwise the call pauses until this manager releases
 * the resource (`local-queue.ts`), the store notifies the call, the holder's lease should be over,
 * or a timer ends. The timer covers lost messages.
 *
 * Limits: calls of one manager are served in order for a single resource only. When the loop ends,
 * it waits until the store has deleted what the last attempt left.
 */

/** Parts of the manager that its calls use. */
export interface AcquireContext {
  readonly runtime: SteadyRuntime;
  readonly scheduler: TimerScheduler;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly owners: Owners;
  readonly queues: LocalQueues;
  readonly keeper: Keeper;
  /** Calls that have not ended, including the deletion of what they left. Each removes itself. */
  readonly calls: Set<Acquisition>;
}

/** A grant that was still valid when the call received it. */
export interface Acquired {
  readonly grant: Grant;
  readonly started: Instant;
  readonly attempts: number;
  readonly waitedMs: number;
  /** Validity, counted from `started`: that of the grant, or the rest of it after a hand-over. */
  readonly validityMs: number;
}

/** Details of the last refused attempt: of this call, or of the call in front of it. */
interface Seen {
  readonly holder: Holder | undefined;
  readonly votes?: (() => readonly Vote[]) | undefined;
}

/** Turns an attempt into the result of a manager's method. `refused`: only if `wait` is 0. */
interface Take<Result> {
  granted(call: Acquisition, acquired: Acquired, moment: Instant): Result;
  refused(call: Acquisition, refused: Refused): Result;
}

/** One call that acquires: its resources, its options, and the loop of its attempts. */
export class Acquisition extends CallCancellation {
  readonly resources: readonly string[];
  readonly options: ResolvedOptions;
  readonly #context: AcquireContext;
  #reject: ((error: unknown) => void) | undefined;
  #done: Promise<void> | undefined;

  constructor(context: AcquireContext, resources: readonly string[], options: ResolvedOptions) {
    super();
    this.#context = context;
    this.resources = resources;
    this.options = options;
  }

  /** Returns the caller's promise. It rejects as soon as the call is cancelled. */
  start<Result>(take: Take<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#reject = (reason) => void withCallerFrames(reason).then(resolve, reject);
      this.#done = this.#run(take, resolve);
    });
  }

  override cancel(reason: unknown): void {
    super.cancel(reason);
    this.#reject?.(this.reason);
  }

  /** Cancels the call. Resolves when the call has ended, including its cleanup. */
  async end(reason: unknown): Promise<void> {
    this.cancel(reason);
    await this.#done;
  }

  /** Sends attempts until one is granted, `wait` ends or the call is cancelled. Never rejects. */
  async #run<Result>(take: Take<Result>, resolve: (result: Result) => void): Promise<void> {
    const { resources, options } = this;
    const { runtime, store, owners } = this.#context;
    const { clock, random } = runtime;
    const began = clock.now();
    const beganMs = began.monotonicMs;
    let waitEndsMs = beganMs + options.waitMs;
    let waiter: Waiter | undefined;
    let backoff: Backoff | undefined;
    try {
      const gapMs = store.gapRemainingMs?.(resources) ?? 0;
      if (this.#isBehindOthers()) waiter = new Waiter(this.#context, this);
      else if (gapMs > 0) await leaveGap(this.#context, this, gapMs);
      for (let attempts = 1; ; attempts += 1) {
        if (waiter !== undefined) {
          // perf (contended): pauses in this loop, not in a function: one more promise would make
          // the attempt too late to share a script call with the release that woke us.
          for (let ms = waiter.standByMs(waitEndsMs); ms > 0; ms = waiter.standByMs(waitEndsMs)) {
            await waiter.pause(ms, false);
          }
          const { offer } = waiter;
          if (offer !== undefined) {
            if (this.cancelled) return await this.#giveBack(offer.grant);
            const waitedMs = offer.started.monotonicMs - beganMs;
            const acquired = { ...offer, attempts: attempts - 1, waitedMs };
            return resolve(take.granted(this, acquired, clock.now()));
          }
        }
        if (this.cancelled) throw this.reason;
        if (waiter?.maySend === false) {
          throw this.#timeout(attempts - 1, clock.monotonicMs() - beganMs, waiter);
        }
        waiter?.attemptBegins();
        // Validity counts from before the first byte is sent.
        const started = attempts === 1 && waiter === undefined && gapMs <= 0 ? began : clock.now();
        const { ttlMs, label } = options;
        const owner = owners.next(label);
        const request = { resources, owner, ttlMs, started, waitEndsMs, cancellation: this };
        const reply = await (waiter?.store ?? store).attempt(request);
        const received = clock.now();
        const outcome = this.#checked(reply, attempts, started, received);
        if (outcome.kind === "granted") {
          const { grant } = outcome;
          if (this.cancelled) return await this.#giveBack(grant);
          waiter?.granted(grant, label);
          waiter = undefined;
          const waitedMs = started.monotonicMs - beganMs;
          const acquired = { grant, started, validityMs: grant.validityMs, attempts, waitedMs };
          return resolve(take.granted(this, acquired, received));
        }
        waitEndsMs = waitEndsAfter(outcome, options, { beganMs, waitEndsMs, clock });
        const isHopeless = outcome.kind === "failed" && !outcome.retryable;
        if (this.cancelled || isHopeless || waitEndsMs <= clock.monotonicMs()) {
          // Ends the call only when the store has deleted what the attempt left.
          void waiter?.leave();
          await outcome.cleanup;
          return resolve(this.#refuse(take, outcome, attempts, beganMs));
        }
        const isNew = waiter === undefined;
        waiter ??= new Waiter(this.#context, this);
        backoff ??= new Backoff(random, options.retryMinMs, options.retryMaxMs);
        const pauseMs = this.#pauseMs(outcome, waiter, backoff, isNew, waitEndsMs);
        if (outcome.kind === "held") this.#emitContended(attempts, outcome.holder, pauseMs);
        if (pauseMs > 0 && waiter.isFirst) await waiter.pause(pauseMs);
        if (this.cancelled) await outcome.cleanup;
      }
    } catch (error) {
      // Rejects the caller's promise now, because `leave` below may last as long as a node timeout.
      this.#reject?.(error);
    } finally {
      if (waiter !== undefined) await waiter.leave();
      this.unbind();
      this.#context.calls.delete(this);
    }
  }

  /** Returns the caller's result for a refused attempt, or throws the error of the call. */
  #refuse<Result>(take: Take<Result>, refused: Refused, attempts: number, beganMs: number): Result {
    if (this.cancelled) throw this.reason;
    if (this.options.waitMs === 0) return take.refused(this, refused);
    throw this.failure(refused, attempts, this.#context.runtime.clock.monotonicMs() - beganMs);
  }

  /** Returns the pause after a refusal; 0 if the next attempt comes at once. */
  #pauseMs(
    refused: Refused,
    waiter: Waiter,
    backoff: Backoff,
    isNew: boolean,
    waitEndsMs: number,
  ): number {
    if (refused.kind === "held") waiter.refused(refused);
    const isNotified = waiter.store !== undefined;
    // The second attempt comes at once: unlike the first, it adds an entry to the store's queue.
    if (isNew && isNotified && waiter.isFirst) return 0;
    const leftMs = waitEndsMs - this.#context.runtime.clock.monotonicMs();
    return Math.max(0, Math.min(backoff.pauseMsAfter(refused, isNotified), leftMs));
  }

  /** Releases the grant of a call that was cancelled, and throws the reason of the cancellation. */
  async #giveBack(grant: Grant): Promise<never> {
    this.#context.queues.over(grant);
    await this.#context.store.release(grant);
    throw this.reason;
  }

  /** True if this call must queue behind others of this manager. A call with `wait` 0 does not. */
  #isBehindOthers(): boolean {
    const { resources, options } = this;
    if (options.waitMs === 0 || resources.length > 1) return false;
    return this.#context.queues.has(resources[0] ?? "");
  }

  /**
   * Returns the error of a failed wait: the store's error for a fault, a timeout for contention.
   */
  failure(refused: Refused, attempts: number, waitedMs: number): Error {
    if (refused.kind === "failed") return refused.error;
    return this.#timeout(attempts, waitedMs, refused);
  }

  #timeout(attempts: number, waitedMs: number, seen: Seen): AcquireTimeoutError {
    const { keeper, owners } = this.#context;
    const holder = keeper.withSince(this.resources, owners.withSelf(seen.holder));
    const votes = seen.votes?.();
    return new AcquireTimeoutError(this.resources, { attempts, waitedMs, holder, votes });
  }

  /** Checks that a grant is still valid at `received`, and emits the `attempt` event. */
  #checked(
    reply: AttemptOutcome,
    attempt: number,
    started: Instant,
    received: Instant,
  ): AttemptOutcome {
    const { events, store } = this.#context;
    const isOver =
      reply.kind === "granted" && leftAt(received, started, reply.grant.validityMs) < 1;
    const outcome = isOver ? tooLate(store, reply.grant) : reply;
    if (!events.wants("attempt")) return outcome;
    const elapsedMs = received.monotonicMs - started.monotonicMs;
    const error = outcome.kind === "failed" ? outcome.error : undefined;
    const about = { resources: this.resources, label: this.options.label };
    events.emit("attempt", { ...about, attempt, outcome: outcome.kind, elapsedMs, error });
    return outcome;
  }

  #emitContended(attempt: number, seen: Holder | undefined, retryInMs: number): void {
    const { events, owners } = this.#context;
    if (!events.wants("contended")) return;
    const about = { resources: this.resources, label: this.options.label };
    events.emit("contended", { ...about, attempt, holder: owners.withSelf(seen), retryInMs });
  }

  /** Creates the lease of a grant. `moment` is the present time. */
  lease(acquired: Acquired, moment: Instant): HeldLease {
    const { keeper, events } = this.#context;
    const { grant, attempts, waitedMs } = acquired;
    const lease = keeper.hold(acquired, this.options, moment);
    if (events.wants("acquired")) {
      const about = { resources: grant.resources, label: this.options.label, fence: grant.fence };
      events.emit("acquired", { ...about, attempts, waitedMs, remainingMs: lease.remainingMs() });
    }
    return lease;
  }
}

/** For `acquire` and `using`: returns a lease, and throws for a refusal. */
export const orThrow: Take<HeldLease> = {
  granted: (call, acquired, moment) => call.lease(acquired, moment),
  refused(call, refused) {
    throw call.failure(refused, 1, 0);
  },
};

/**
 * For `tryAcquire`: returns a lease, or undefined if others hold the resource. Throws for a fault.
 */
export const orUndefined: Take<HeldLease | undefined> = {
  granted: (call, acquired, moment) => call.lease(acquired, moment),
  refused(_, refused) {
    if (refused.kind === "failed") throw refused.error;
    return undefined;
  },
};

/** For `break`: returns the grant itself, without a lease, or the refusal. */
export const asOutcome: Take<Acquired | Refused> = {
  granted: (_, acquired) => acquired,
  refused: (_, refused) => refused,
};

function tooLate(store: OpenStore, grant: Grant): AttemptOutcome {
  const cleanup = store.release(grant).then(() => undefined);
  const hint = "It was granted, but the validity was over before it could be handed out";
  const error = new QuorumError("acquire", grant.resources, [], { quorum: 0, hint });
  return { kind: "failed", error, retryable: true, cleanup };
}
