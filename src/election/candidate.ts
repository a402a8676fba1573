import { isHoldfastError } from "../core/errors.ts";
import type { Lease } from "../core/lease/lease.ts";
import { Listeners } from "../core/listeners.ts";
import type { Locks } from "../core/locks.ts";
import { knownFence, type ManagerParts } from "../core/manager-parts.ts";
import type { LockOptions } from "../core/options.ts";
import { messageOf } from "../core/report/loggable.ts";
import { Pause } from "../core/time/pause.ts";
import { TermEndedError } from "./term-ended-error.ts";
import { CurrentTerm, type Settled, type Term } from "./term.ts";

export type CandidateState = "waiting" | "leading" | "stopped";

/**
 * Why a term ended: the work returned or failed, the lease was lost, or the candidate resigned or
 * was stopped. The close of the manager counts as `stopped`.
 */
export type DeposedReason = "returned" | "failed" | "lost" | "resigned" | "stopped";

/** Events of a candidate. Also published on the diagnostics channel `holdfast:<name>`. */
export interface CandidateEvents {
  /** A term began. The work starts after this event. */
  elected: {
    readonly name: string;
    readonly label: string | undefined;
    /** Undefined if the store does not fence. */
    readonly fence: bigint | undefined;
    readonly waitedMs: number;
  };
  /** A term ended: the work has settled and the lease is over. */
  deposed: {
    readonly name: string;
    readonly label: string | undefined;
    readonly fence: bigint | undefined;
    readonly reason: DeposedReason;
    readonly ledMs: number;
    /** Error of the work, unless it only reports that the signal of the term aborted. */
    readonly error: unknown;
    /** Pause before the candidate stands again. Undefined if it has stopped. */
    readonly standsInMs: number | undefined;
  };
  /** An attempt to get the lease failed in a way that does not pass by waiting. */
  "candidate-failed": {
    readonly name: string;
    readonly error: unknown;
    readonly standsInMs: number;
  };
}

export type CandidateEventName = keyof CandidateEvents;
export type CandidateListener<Name extends CandidateEventName> = (
  event: CandidateEvents[Name],
) => void;

/** One candidate of an election. */
export interface Candidate extends AsyncDisposable {
  readonly name: string;
  /** `leading` only while the lease is held, by local clocks. */
  readonly state: CandidateState;
  /** Present term. Undefined while the candidate does not lead. */
  readonly term: Term | undefined;
  /**
   * Ends the present term: aborts its signal, and resolves when the work has settled and the lease
   * is released. The candidate then stands again, behind the others. Resolves at once if there is
   * no term. Do not await this in the work itself.
   */
  resign(): Promise<void>;
  /**
   * Ends the present term and the candidacy. Resolves when the work has settled and the lease is
   * released. A second call returns the same promise. Do not await this in the work itself.
   */
  stop(): Promise<void>;
  /** Adds a listener for one kind of event. Returns a function that removes it. */
  on<Name extends CandidateEventName>(name: Name, listener: CandidateListener<Name>): () => void;
}

export interface Candidacy {
  readonly locks: Locks;
  readonly parts: ManagerParts;
  readonly name: string;
  readonly lock: LockOptions;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  readonly signal: AbortSignal | undefined;
  readonly work: (term: Term) => unknown;
}

/**
 * Problem: a leader must not run its work beside itself, nor give its lease to a successor while
 * its work still runs.
 * Idea: one loop that waits for the lease, runs the work until it settles, releases, and begins
 * again. Nothing else starts the work.
 * Limit: a lease can be lost while the work runs on. The loop then waits for the work, and the
 * guards refuse what it writes.
 */
export class StandingCandidate implements Candidate {
  readonly name: string;
  readonly #candidacy: Candidacy;
  readonly #listeners: Listeners<CandidateEvents>;
  readonly #pause: Pause;
  /** Ends the wait for the lease. */
  readonly #stopping = new AbortController();
  #term: CurrentTerm | undefined;
  #termOver: Promise<unknown> = Promise.resolve();
  #isStopped = false;
  /** Failures in a row. */
  #failures = 0;
  readonly #run: Promise<void>;

  constructor(candidacy: Candidacy) {
    const { name, parts, signal } = candidacy;
    this.name = name;
    this.#candidacy = candidacy;
    const events = ["elected", "deposed", "candidate-failed"] as const;
    this.#listeners = new Listeners(parts.runtime.diagnostics, events);
    this.#pause = new Pause(parts.runtime.clock);
    const stop = (): void => void this.stop();
    const removeOnClose = parts.onClose(() => this.#pause.end());
    signal?.addEventListener("abort", stop);
    this.#run = this.#stand().finally(() => {
      this.#isStopped = true;
      removeOnClose();
      signal?.removeEventListener("abort", stop);
    });
    if (signal?.aborted === true) stop();
  }

  get state(): CandidateState {
    if (this.#isStopped) return "stopped";
    return this.term === undefined ? "waiting" : "leading";
  }

  get term(): Term | undefined {
    const lease = this.#term?.lease.state;
    return lease === "held" || lease === "doubtful" ? this.#term : undefined;
  }

  async resign(): Promise<void> {
    this.#term?.end(this.name, "resigned");
    await this.#termOver;
  }

  stop(): Promise<void> {
    this.#stopping.abort(new TermEndedError(this.name, "stopped"));
    this.#term?.end(this.name, "stopped");
    this.#pause.end();
    return this.#run;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  on<Name extends CandidateEventName>(name: Name, listener: CandidateListener<Name>): () => void {
    return this.#listeners.on(name, listener);
  }

  /** Stands for election again and again, until the candidate or the manager ends. */
  async #stand(): Promise<void> {
    const { locks, lock, parts } = this.#candidacy;
    const { clock } = parts.runtime;
    const { signal } = this.#stopping;
    // The caller of `lead` adds its listeners first.
    await Promise.resolve();
    while (!signal.aborted) {
      const beganMs = clock.monotonicMs();
      const lease = await locks.acquire(this.name, { ...lock, signal }).catch((error: unknown) => {
        if (signal.aborted || isHoldfastError(error, "CLOSED")) return undefined;
        return { error };
      });
      if (lease === undefined) return;
      let pauseMs: number | undefined;
      if ("error" in lease) {
        const { error } = lease;
        pauseMs = this.#pauseAfterFailure();
        const event = { name: this.name, error, standsInMs: pauseMs };
        if (!this.#listeners.emit("candidate-failed", event)) warn(this.name, error);
      } else {
        const term = this.#serve(lease, clock.monotonicMs() - beganMs);
        this.#termOver = term;
        pauseMs = await term;
      }
      if (pauseMs === undefined) return;
      if (!signal.aborted && pauseMs > 0) await this.#pause.sleep(pauseMs);
    }
  }

  /**
   * Runs the work under a lease, and releases the lease when the work has settled. Returns the
   * pause before the next candidacy; undefined if there is none.
   */
  async #serve(lease: Lease, waitedMs: number): Promise<number | undefined> {
    const { locks, parts, work } = this.#candidacy;
    const { clock } = parts.runtime;
    const { name } = this;
    const about = { name, label: lease.label, fence: knownFence(locks, lease) };
    const beganMs = clock.monotonicMs();
    // Stopped after the grant, and before the term began.
    if (this.#stopping.signal.aborted) {
      await lease.release();
      return undefined;
    }
    const term = new CurrentTerm(lease);
    this.#term = term;
    this.#listeners.emit("elected", { ...about, waitedMs });
    const settled: Settled = term.signal.aborted ? { error: undefined } : await term.run(work);
    const isLost = lease.state === "lost";
    const outcome = await lease.release();
    this.#term = undefined;
    const reason = this.#reasonOf(term, settled, isLost || takenAway(outcome));
    const error = settled.error?.thrown;
    const shown = settled.error !== undefined && !term.isOwnEnd(error) ? error : undefined;
    const ledMs = clock.monotonicMs() - beganMs;
    const standsInMs = this.#pauseAfter(reason, ledMs);
    const event = { ...about, reason, ledMs, error: shown, standsInMs };
    const isReceived = this.#listeners.emit("deposed", event);
    if (shown !== undefined && !isReceived) warn(name, shown);
    return standsInMs;
  }

  #reasonOf(term: CurrentTerm, { error }: Settled, isLost: boolean): DeposedReason {
    if (isLost) return "lost";
    if (isHoldfastError(term.signal.reason, "CLOSED")) return "stopped";
    if (term.ended !== undefined) return term.ended;
    return error === undefined ? "returned" : "failed";
  }

  /**
   * Returns the pause after a term. A candidate that lost its lease stands at once. Others pause,
   * so that the next candidate comes first also on a store without a queue.
   */
  #pauseAfter(reason: DeposedReason, ledMs: number): number | undefined {
    const { minDelayMs, maxDelayMs } = this.#candidacy;
    if (reason !== "failed" || ledMs >= maxDelayMs) this.#failures = 0;
    if (reason === "stopped" || this.#stopping.signal.aborted) return undefined;
    if (reason === "lost") return 0;
    return reason === "failed" ? this.#pauseAfterFailure() : minDelayMs;
  }

  /** Returns a pause that doubles with each failure in a row, for work that always fails. */
  #pauseAfterFailure(): number {
    const { minDelayMs, maxDelayMs } = this.#candidacy;
    const pauseMs = Math.min(maxDelayMs, minDelayMs * 2 ** this.#failures);
    this.#failures += 1;
    return pauseMs;
  }
}

function takenAway(outcome: Awaited<ReturnType<Lease["release"]>>): boolean {
  return !outcome.released && outcome.reason === "taken";
}

/** Reports an error that no listener received. */
function warn(name: string, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
  process.emitWarning(`the candidate for "${name}" failed: ${text}`, "HoldfastWarning");
}
