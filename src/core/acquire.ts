import { Backoff } from "./backoff.ts";
import type { Cancellation } from "./cancellation.ts";
import { AcquireTimeoutError, QuorumError } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { Lines } from "./lines.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Owners } from "./owners.ts";
import type { Instant, Runtime } from "./ports.ts";
import type { Scheduler } from "./scheduler.ts";
import type { AttemptOutcome, Grant, OpenStore } from "./store.ts";
import { leftMs, now } from "./validity.ts";
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
}

type Refused = Exclude<AttemptOutcome, { kind: "granted" }>;

/** Between two attempts of somebody whom the store tells when one is worth while. */
const askAgainMsMax = 1_000;

/**
 * Attempts until one is granted, `wait` ends, or the wait is cancelled. Each attempt has an owner
 * of its own. Resolves to a refusal only where no waiting was asked for, or where none helps.
 */
export async function acquire(
  context: AcquireContext,
  resources: readonly string[],
  options: ResolvedOptions,
  cancellation: Cancellation,
): Promise<Acquired | Refused> {
  const { clock, random } = context.runtime;
  const beganMs = clock.monotonicMs();
  const backoff = new Backoff(random, options.retryMinMs, options.retryMaxMs);
  const waitLeftMs = (): number => beganMs + options.waitMs - clock.monotonicMs();
  let wait = standsBehind(context, resources, options)
    ? new Wait(context, resources, cancellation)
    : undefined;
  try {
    for (let attempt = 1; ; attempt += 1) {
      // Not a call of its own: what a release wakes has to ask in the same turn.
      for (let leftMs = waitLeftMs(); wait?.mustStandBy(leftMs) === true; leftMs = waitLeftMs()) {
        await wait.pause(leftMs);
      }
      if (cancellation.cancelled) throw cancellation.reason;
      if (wait?.isItsTurn === false) throw timedOut(context, resources, wait, attempt - 1, beganMs);
      wait?.attemptBegins();
      const started = now(clock);
      const owner = context.owners.next(options.label);
      const { ttlMs } = options;
      const request = { resources, owner, ttlMs, started, cancellation };
      const outcome = await (wait?.store ?? context.store).attempt(request);
      const checked = stillValid(context, outcome, started);
      tellAttempt(context, resources, options, attempt, started, checked);
      if (checked.kind === "granted") {
        if (cancellation.cancelled) {
          await context.store.release(checked.grant);
          throw cancellation.reason;
        }
        wait?.granted(checked.grant, options.label);
        wait = undefined;
        const waitedMs = started.monotonicMs - beganMs;
        return { grant: checked.grant, started, attempts: attempt, waitedMs };
      }
      const hopeless = checked.kind === "failed" && !checked.retryable;
      if (cancellation.cancelled || hopeless || waitLeftMs() <= 0) {
        // Nothing of ours is left behind when the caller learns that it failed.
        await Promise.all([checked.cleanup, wait?.leave()]);
        if (cancellation.cancelled) throw cancellation.reason;
        if (options.waitMs === 0 || hopeless) return checked;
        throw failure(resources, checked, attempt, clock.monotonicMs() - beganMs);
      }
      const newcomer = wait === undefined;
      wait ??= new Wait(context, resources, cancellation);
      if (checked.kind === "held") wait.refused(checked.holder);
      // A newcomer has no place in the store's queue yet: it asks again at once, with one.
      const pauseMs =
        newcomer && wait.store !== undefined && wait.isItsTurn
          ? 0
          : Math.min(pauseAfter(checked, backoff, wait, context, options), waitLeftMs());
      tellContended(context, resources, options, attempt, checked, pauseMs);
      if (pauseMs > 0 && wait.isItsTurn) await wait.pause(pauseMs);
      if (cancellation.cancelled) await checked.cleanup;
    }
  } finally {
    await wait?.leave();
  }
}

/** Others of this manager wait for it already. Whoever does not wait takes its chance. */
function standsBehind(
  context: AcquireContext,
  resources: readonly string[],
  { waitMs }: ResolvedOptions,
): boolean {
  const [resource = ""] = resources;
  return waitMs > 0 && resources.length === 1 && context.lines.has(resource);
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
  resources: readonly string[],
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

/** The store checks validity too; this is the other side of the boundary. */
function stillValid(
  context: AcquireContext,
  outcome: AttemptOutcome,
  started: Instant,
): AttemptOutcome {
  if (outcome.kind !== "granted") return outcome;
  const { grant } = outcome;
  if (leftMs(context.runtime.clock, started, grant.validityMs) >= 1) return outcome;
  const cleanup = context.store.release(grant).then(() => undefined);
  const error = new QuorumError("acquire", grant.resources, [], {
    quorum: 0,
    hint: "It was granted, but the validity was over before it could be handed out",
  });
  return { kind: "failed", error, retryable: true, cleanup };
}

function tellAttempt(
  context: AcquireContext,
  resources: readonly string[],
  options: ResolvedOptions,
  attempt: number,
  started: Instant,
  outcome: AttemptOutcome,
): void {
  if (!context.events.wants("attempt")) return;
  context.events.emit("attempt", {
    resources,
    label: options.label,
    attempt,
    outcome: outcome.kind,
    elapsedMs: context.runtime.clock.monotonicMs() - started.monotonicMs,
    error: outcome.kind === "failed" ? outcome.error : undefined,
  });
}

function tellContended(
  context: AcquireContext,
  resources: readonly string[],
  { label }: ResolvedOptions,
  attempt: number,
  refused: Refused,
  retryInMs: number,
): void {
  if (refused.kind !== "held" || !context.events.wants("contended")) return;
  const { holder } = refused;
  context.events.emit("contended", { resources, label, attempt, holder, retryInMs });
}
