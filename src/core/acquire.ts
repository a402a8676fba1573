import type { AcquireCall } from "./acquire-call.ts";
import { Backoff } from "./backoff.ts";
import { AcquireTimeoutError, QuorumError } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { Offer } from "./hand-over.ts";
import type { Lines } from "./lines.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Owners } from "./owners.ts";
import type { Instant, Runtime } from "./ports.ts";
import type { Scheduler } from "./scheduler.ts";
import type { AttemptOutcome, Grant, OpenStore } from "./store.ts";
import { leftAt, now } from "./validity.ts";
import { Wait } from "./wait.ts";

export interface AcquireContext {
  readonly runtime: Runtime;
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

/** Between two attempts of somebody whom the store tells when one is worth while. */
const askAgainMsMax = 1_000;

/** What came of a call's first attempt, for the call to go on from. */
export interface FirstAttempt {
  readonly started: Instant;
  readonly outcome: AttemptOutcome;
}

/**
 * One attempt, with an owner of its own. `started` was read right before: validity counts from it.
 */
export function ask(
  { owners }: AcquireContext,
  store: Pick<OpenStore, "attempt">,
  call: AcquireCall,
  started: Instant,
): Promise<AttemptOutcome> {
  const { resources, options } = call;
  const owner = owners.next(options.label);
  return store.attempt({ resources, owner, ttlMs: options.ttlMs, started, cancellation: call });
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
  const { resources, options } = call;
  const { clock, random } = context.runtime;
  const beganMs = first?.started.monotonicMs ?? clock.monotonicMs();
  const backoff = new Backoff(random, options.retryMinMs, options.retryMaxMs);
  const waitLeftMs = (): number => beganMs + options.waitMs - clock.monotonicMs();
  let made = first;
  let wait =
    made === undefined && standsBehind(context, call) ? new Wait(context, call) : undefined;
  try {
    for (let attempt = 1; ; attempt += 1) {
      if (made === undefined) {
        // Not a call of its own: what a release wakes has to ask in the same turn.
        for (let leftMs = waitLeftMs(); wait?.mustStandBy(leftMs) === true; leftMs = waitLeftMs()) {
          await wait.pause(leftMs);
        }
        if (wait?.taken !== undefined) {
          return await takenOver(context, call, wait.taken, attempt - 1, beganMs);
        }
        if (call.cancelled) throw call.reason;
        if (wait?.isItsTurn === false) throw timedOut(context, call, wait, attempt - 1, beganMs);
        wait?.attemptBegins();
        const started = now(clock);
        const told = await ask(context, wait?.store ?? context.store, call, started);
        made = { started, outcome: checked(context, call, attempt, started, told, now(clock)) };
      }
      const { started, outcome } = made;
      made = undefined;
      if (outcome.kind === "granted") {
        if (call.cancelled) {
          await context.store.release(outcome.grant);
          throw call.reason;
        }
        wait?.granted(outcome.grant, options.label);
        wait = undefined;
        const waitedMs = started.monotonicMs - beganMs;
        return { grant: outcome.grant, started, attempts: attempt, waitedMs };
      }
      const hopeless = outcome.kind === "failed" && !outcome.retryable;
      if (call.cancelled || hopeless || waitLeftMs() <= 0) {
        // Nothing of ours is left behind when the caller learns that it failed.
        await Promise.all([outcome.cleanup, wait?.leave()]);
        if (call.cancelled) throw call.reason;
        if (options.waitMs === 0 || hopeless) return outcome;
        throw failure(resources, outcome, attempt, clock.monotonicMs() - beganMs);
      }
      const newcomer = wait === undefined;
      wait ??= new Wait(context, call);
      if (outcome.kind === "held") wait.refused(outcome.holder);
      // A newcomer has no place in the store's queue yet: it asks again at once, with one.
      const pauseMs =
        newcomer && wait.store !== undefined && wait.isItsTurn
          ? 0
          : Math.min(pauseAfter(outcome, backoff, wait, context, options), waitLeftMs());
      tellContended(context, call, attempt, outcome, pauseMs);
      if (pauseMs > 0 && wait.isItsTurn) await wait.pause(pauseMs);
      if (call.cancelled) await outcome.cleanup;
    }
  } finally {
    await wait?.leave();
  }
}

/** The holder before has passed it on; whoever is no longer there to have it gives it back. */
async function takenOver(
  { store, lines }: AcquireContext,
  call: AcquireCall,
  { grant, started, validityMs }: Offer,
  attempts: number,
  beganMs: number,
): Promise<Acquired> {
  if (!call.cancelled) {
    return { grant, started, validityMs, attempts, waitedMs: started.monotonicMs - beganMs };
  }
  lines.over(grant);
  await store.release(grant);
  throw call.reason;
}

/** Others of this manager wait for it already. Whoever does not wait takes its chance. */
export function standsBehind(
  { lines }: AcquireContext,
  { resources, options }: AcquireCall,
): boolean {
  return options.waitMs > 0 && resources.length === 1 && lines.has(resources[0] ?? "");
}

/**
 * Where the store tells us, asking is only for what it cannot tell: a message lost, a holder that
 * died. Where it cannot, or where rivals each got a part, the pauses are random and grow; but a
 * part may also be what a dead holder's time has left so far, and the rest is free when it is over.
 */
function pauseAfter(
  refused: Refused,
  backoff: Backoff,
  wait: Wait,
  { runtime }: AcquireContext,
  { retryMaxMs }: ResolvedOptions,
): number {
  const retryInMs = refused.kind === "held" ? refused.retryInMs : undefined;
  if (wait.store === undefined || retryInMs === undefined) return backoff.nextMs();
  const spread = 0.75 + runtime.random.fraction() / 2;
  const isSplit = refused.kind === "held" && refused.split === true;
  const mostMs = isSplit ? backoff.nextMs() : Math.min(retryMaxMs, askAgainMsMax) * spread;
  return Math.min(retryInMs + spread, mostMs);
}

function timedOut(
  context: AcquireContext,
  { resources }: AcquireCall,
  { holder }: Wait,
  attempts: number,
  beganMs: number,
): AcquireTimeoutError {
  const waitedMs = context.runtime.clock.monotonicMs() - beganMs;
  return new AcquireTimeoutError(resources, { attempts, waitedMs, holder });
}

/** What the caller of a failed wait is told: contention and faults are never the same error. */
export function failure(
  resources: readonly string[],
  refused: Refused,
  attempts: number,
  waitedMs: number,
): Error {
  if (refused.kind === "failed") return refused.error;
  return new AcquireTimeoutError(resources, { attempts, waitedMs, holder: refused.holder });
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
  const { holder } = refused;
  context.events.emit("contended", { resources, label, attempt, holder, retryInMs });
}
