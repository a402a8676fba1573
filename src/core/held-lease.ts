import { Deadline } from "./deadline.ts";
import { askWhile, noteDoubt, raiseDoubt } from "./doubt.ts";
import { durationMs, type Duration } from "./durations.ts";
import {
  ClosedError,
  LeaseLostError,
  LeaseReleasedError,
  UnsupportedError,
  type LossReason,
} from "./errors.ts";
import type { LockEvents } from "./events.ts";
import { isIdle, newExtras, type LeaseExtras } from "./lease-extras.ts";
import type { LeaseHost } from "./lease-host.ts";
import { askBeforeReading } from "./lease-signal.ts";
import type { Lease, LeaseState, LeaseTerms } from "./lease.ts";
import { ttlMinMs } from "./options.ts";
import type { Instant } from "./ports.ts";
import type { Task } from "./scheduler.ts";
import type { Grant, ReleaseOutcome } from "./store.ts";
import { now } from "./validity.ts";

/** Where guards look for a lease's ear; a registered symbol, so that they need not import it. */
const fencedOffSymbol = Symbol.for("holdfast.lease.fencedOff");

type FencedOffEvent = Omit<LockEvents["fenced-off"], "resources" | "label">;

/** The state machine of one lease; also its own deadline, and its own task in the scheduler. */
export class HeldLease extends Deadline implements Lease, Task {
  readonly #grant: Grant;
  #state: LeaseState = "held";
  #extras: LeaseExtras | undefined;

  constructor(terms: LeaseTerms, grant: Grant, started: Instant) {
    super(terms, started, grant.validityMs);
    this.#grant = grant;
  }

  /** @internal */
  get ttlMs(): number {
    return this.terms.ttlMs;
  }

  get label(): string | undefined {
    return this.terms.label;
  }

  get #host(): LeaseHost {
    return this.terms.host;
  }

  get #more(): LeaseExtras {
    this.#extras ??= newExtras();
    return this.#extras;
  }

  get resources(): readonly string[] {
    return this.#grant.resources;
  }

  get fence(): bigint {
    const { fence } = this.#grant;
    if (fence !== undefined) return fence;
    throw new UnsupportedError("this store does not fence its leases: there is no fence to use", {
      resources: this.resources,
    });
  }

  get state(): LeaseState {
    this.judge();
    return this.#state;
  }

  get signal(): AbortSignal {
    const more = this.#more;
    if (more.controller === undefined) {
      more.controller = new AbortController();
      askBeforeReading(more.controller, () => this.judge());
      const over = more.loss ?? more.closed;
      if (over !== undefined) more.controller.abort(over);
    }
    return more.controller.signal;
  }

  remainingMs(): number {
    this.judge();
    return this.isActive ? Math.floor(this.leftMs()) : 0;
  }

  assertHeld(): void {
    this.judge();
    if (this.#extras?.loss !== undefined) throw this.#extras?.loss;
    if (this.#extras?.closed !== undefined) throw this.#extras?.closed;
    if (this.#state === "released") throw new LeaseReleasedError(this.resources);
  }

  async prove(): Promise<boolean> {
    this.judge();
    if (this.#extras?.loss !== undefined) return false;
    this.assertHeld();
    const settle = askWhile(() => this.#extras);
    const outcome = await this.#host.store.prove(this.#grant);
    this.judge();
    if (this.#extras?.loss !== undefined) return false;
    this.assertHeld();
    switch (outcome.kind) {
      case "proven":
        if (settle()) this.#state = "held";
        return true;
      case "gone":
        this.#lose("taken");
        return false;
      case "failed":
        this.#turnDoubtful(outcome.error);
        throw outcome.error;
      default:
        return outcome satisfies never;
    }
  }

  async extend(ttl?: Duration): Promise<void> {
    const ttlMs =
      ttl === undefined
        ? this.ttlMs
        : durationMs("ttl", ttl, { minMs: ttlMinMs, maxMs: this.#host.ttlMaxMs });
    this.assertHeld();
    // One at a time: two rounds under way could not tell which of them set the nodes' clocks. And
    // in order: renewals that are due again at once must not keep the user's own call waiting.
    const more = this.#more;
    const turn =
      more.extending === undefined
        ? this.#extendNow(ttlMs)
        : more.extending.then(() => {
            // It may have been released while this call stood in line.
            this.assertHeld();
            return this.#extendNow(ttlMs);
          });
    const settled = (): void => {
      if (more.extending !== line) return;
      more.extending = undefined;
      if (isIdle(more) && this.#extras === more) this.#extras = undefined;
    };
    const line = turn.then(settled, settled);
    more.extending = line;
    await turn;
  }

  release(): Promise<ReleaseOutcome> {
    const more = this.#more;
    more.releasing ??= this.#releaseNow();
    return more.releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal Why it was given back under its holder's hands, if the manager was closed. */
  get closed(): ClosedError | undefined {
    return this.#extras?.closed;
  }

  /** @internal The manager closes: work that still runs must learn that its lease is gone. */
  async close(): Promise<void> {
    this.judge();
    if (this.isActive) {
      const closed = new ClosedError(this.resources);
      this.#more.closed = closed;
      this.#more.controller?.abort(closed);
    }
    await this.release();
  }

  static {
    Object.defineProperty(this.prototype, fencedOffSymbol, {
      /** Called by a guard that refused this lease's fence. */
      value(this: HeldLease, event: FencedOffEvent) {
        this.#host.events.emit("fenced-off", { ...this.#about(), ...event });
      },
    });
  }

  /** @internal Declares the loss if it is time. Every public look at the lease starts here. */
  judge(): void {
    if (this.isActive && this.isOver) this.#lose(this.#whyOver());
  }

  /** @internal The store doubts its own grants, and says which are lost. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    const reason = this.isActive ? judge(this.#grant) : undefined;
    if (reason !== undefined) this.#lose(reason);
  }

  /** @internal The store no longer knows, and says of which; true where this one is among them. */
  callIntoDoubt(judge: (grant: Grant) => Error | undefined): boolean {
    const cause = this.isActive ? judge(this.#grant) : undefined;
    if (cause === undefined) return false;
    raiseDoubt(this.#more, cause);
    this.#turnDoubtful(cause);
    return true;
  }

  /** Run by the scheduler for a renewal that is due, and for the end. */
  run(): void {
    if (!this.isActive) return;
    if (this.isDue) this.#lose(this.#whyOver());
    else this.#host.reschedule(this);
  }

  /** @internal Held, as far as is known: to be renewed, and to be ended in time. */
  get isActive(): boolean {
    return this.#state === "held" || this.#state === "doubtful";
  }

  async #extendNow(ttlMs: number): Promise<void> {
    const started = now(this.#host.clock);
    const settle = askWhile(() => this.#extras);
    const outcome = await this.#host.store.extend(this.#grant, ttlMs);
    // Judged by the old validity first: a reply that comes after it proves nothing.
    this.assertHeld();
    switch (outcome.kind) {
      case "extended":
        if (settle()) this.#state = "held";
        this.#prolong(started, outcome.validityMs);
        return;
      case "gone":
        this.#lose("taken");
        return this.assertHeld();
      case "failed":
        this.#turnDoubtful(outcome.error);
        throw outcome.error;
      default:
        return outcome satisfies never;
    }
  }

  #prolong(started: Instant, validityMs: number): void {
    this.prolong(started, validityMs);
    this.#host.reschedule(this);
    if (this.#host.events.wants("renewed")) {
      const told = { fence: this.#grant.fence, remainingMs: this.remainingMs() };
      this.#host.events.emit("renewed", { ...this.#about(), ...told });
    }
  }

  #turnDoubtful(cause: unknown): void {
    noteDoubt(this.#more, cause);
    if (this.#state !== "held") return;
    this.#state = "doubtful";
    const remainingMs = this.remainingMs();
    this.#host.events.emit("doubtful", { ...this.#about(), remainingMs, cause });
  }

  #lose(reason: LossReason): void {
    const cause = this.#extras?.doubt?.cause;
    // Asked first: an overdue timer, which tells of a stall under way, is about to be cancelled.
    const stalls = this.#host.stalls(this.started);
    this.#state = "lost";
    const loss = new LeaseLostError(this.resources, reason, { cause });
    this.#more.loss = loss;
    this.#host.forget(this);
    this.#host.over(this.#grant);
    this.#more.controller?.abort(loss);
    const told = { fence: this.#grant.fence, reason, heldMs: this.#heldMs(), cause };
    this.#host.events.emit("lost", { ...this.#about(), ...told, ...stalls });
  }

  #whyOver(): LossReason {
    return this.whyOver(this.#state === "doubtful" ? "unreachable" : "expired");
  }

  async #releaseNow(): Promise<ReleaseOutcome> {
    this.judge();
    if (this.isActive) this.#state = "released";
    this.#host.forget(this);
    // First, so that the next one's question travels with the release.
    this.#host.over(this.#grant);
    const told = await this.#host.store.release(this.#grant);
    // A lease that was lost is not released, even where its keys were still there to be deleted.
    const loss = this.#extras?.loss;
    const outcome = loss === undefined ? told : { released: false as const, reason: loss.reason };
    if (this.#host.events.wants("released")) {
      this.#host.events.emit("released", {
        ...this.#about(),
        released: outcome.released,
        reason: outcome.released ? undefined : outcome.reason,
        heldMs: this.#heldMs(),
      });
    }
    return outcome;
  }

  #heldMs(): number {
    return this.#host.clock.monotonicMs() - this.startedMs;
  }

  #about(): { resources: readonly string[]; label: string | undefined } {
    return { resources: this.resources, label: this.label };
  }
}
