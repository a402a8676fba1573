import { Backoff } from "./backoff.ts";
import type { Cancellation } from "./cancellation.ts";
import { AcquireTimeoutError, QuorumError } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Owners } from "./owners.ts";
import type { Instant, Runtime } from "./ports.ts";
import type { Scheduler } from "./scheduler.ts";
import type { AttemptOutcome, Grant, OpenStore } from "./store.ts";
import { leftMs, now } from "./validity.ts";

export interface AcquireContext {
  readonly runtime: Runtime;
  readonly scheduler: Scheduler;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly owners: Owners;
}

/** A grant that was still valid when it was handed over. */
export interface Acquired {
  readonly grant: Grant;
  readonly started: Instant;
  readonly attempts: number;
  readonly waitedMs: number;
}

type Refused = Exclude<AttemptOutcome, { kind: "granted" }>;

/**
 * Attempts until one is granted, `wait` ends, or the wait is cancelled. Each attempt has an owner
 * of its own. Resolves to undefined only for `tryAcquire`, when others hold the resource.
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
  for (let attempt = 1; ; attempt += 1) {
    const started = now(clock);
    const owner = context.owners.next(options.label);
    const { ttlMs } = options;
    const outcome = await context.store.attempt({ resources, owner, ttlMs, started, cancellation });
    const checked = stillValid(context, outcome, started);
    tellAttempt(context, resources, options, attempt, started, checked);
    if (checked.kind === "granted") {
      if (cancellation.cancelled) {
        await context.store.release(checked.grant);
        throw cancellation.reason;
      }
      const waitedMs = started.monotonicMs - beganMs;
      return { grant: checked.grant, started, attempts: attempt, waitedMs };
    }
    if (cancellation.cancelled) {
      await checked.cleanup;
      throw cancellation.reason;
    }
    const waitLeftMs = beganMs + options.waitMs - clock.monotonicMs();
    const hopeless = checked.kind === "failed" && !checked.retryable;
    if (waitLeftMs <= 0 || hopeless) {
      // Nothing of ours is left behind when the caller learns that it failed.
      await checked.cleanup;
      if (options.waitMs === 0 || hopeless) return checked;
      throw failure(resources, checked, attempt, clock.monotonicMs() - beganMs);
    }
    const retryInMs = Math.min(backoff.nextMs(), waitLeftMs);
    if (checked.kind === "held" && context.events.wants("contended")) {
      const { holder } = checked;
      const { label } = options;
      context.events.emit("contended", { resources, label, attempt, holder, retryInMs });
    }
    await pause(context.scheduler, retryInMs, cancellation);
    if (cancellation.cancelled) {
      await checked.cleanup;
      throw cancellation.reason;
    }
  }
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

function pause(scheduler: Scheduler, ms: number, cancellation: Cancellation): Promise<void> {
  // A listener of `contended` may have ended the wait, before there was anything to wake up.
  if (cancellation.cancelled) return Promise.resolve();
  return new Promise((resolve) => {
    const task = scheduler.at(scheduler.clock.monotonicMs() + ms, true, () => {
      cancellation.listen(undefined);
      resolve();
    });
    cancellation.listen(() => {
      scheduler.cancel(task);
      resolve();
    });
  });
}
