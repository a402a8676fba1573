import { Deadline } from "./deadline.ts";
import { Doubt } from "./doubt.ts";
import { durationMs, type Duration } from "./durations.ts";
import {
  ClosedError,
  LeaseLostError,
  LeaseReleasedError,
  UnsupportedError,
  type LossReason,
} from "./errors.ts";
import type { LockEvents } from "./events.ts";
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

/** The state machine of one lease; also its own task in the manager's scheduler. */
export class HeldLease implements Lease, Task {
  /** @internal */ dueMs = 0;
  /** @internal */ heapIndex = -1;
  /** @internal */ readonly ttlMs: number;
  /** @internal When to renew next; Infinity for a lease that is not renewed. */
  renewAtMs: number;
  readonly label: string | undefined;
  readonly #host: LeaseHost;
  readonly #grant: Grant;
  readonly #began: Instant;
  readonly #renewEveryMs: number;
  readonly #deadline: Deadline;
  #state: LeaseState = "held";
  #controller: AbortController | undefined;
  #loss: LeaseLostError | undefined;
  #closed: ClosedError | undefined;
  readonly #doubt = new Doubt();
  /** The end of the line of extensions; never rejects. */
  #extending: Promise<void> = Promise.resolve();
  #releasing: Promise<ReleaseOutcome> | undefined;

  constructor(host: LeaseHost, terms: LeaseTerms) {
    const { grant, started, ttlMs } = terms;
    this.#host = host;
    this.#grant = grant;
    this.label = terms.label;
    this.ttlMs = ttlMs;
    this.#began = started;
    this.#deadline = new Deadline(host.clock, started, grant.validityMs, terms.maxHoldMs);
    this.#renewEveryMs = terms.renewEveryMs;
    this.renewAtMs = started.monotonicMs + terms.renewEveryMs;
  }

  /** Renewals and deadlines never keep the process running by themselves. */
  get keepAlive(): boolean {
    return false;
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
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      askBeforeReading(this.#controller, () => this.judge());
      const over = this.#loss ?? this.#closed;
      if (over !== undefined) this.#controller.abort(over);
    }
    return this.#controller.signal;
  }

  remainingMs(): number {
    this.judge();
    return this.#active ? Math.floor(this.#deadline.leftMs()) : 0;
  }

  assertHeld(): void {
    this.judge();
    if (this.#loss !== undefined) throw this.#loss;
    if (this.#closed !== undefined) throw this.#closed;
    if (this.#state === "released") throw new LeaseReleasedError(this.resources);
  }

  async prove(): Promise<boolean> {
    this.judge();
    if (this.#loss !== undefined) return false;
    this.assertHeld();
    const settle = this.#doubt.ask();
    const outcome = await this.#host.store.prove(this.#grant);
    this.judge();
    if (this.#loss !== undefined) return false;
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
    const turn = this.#extending.then(() => {
      // It may have been released while this call stood in line.
      this.assertHeld();
      return this.#extendNow(ttlMs);
    });
    this.#extending = turn.catch(() => undefined);
    await turn;
  }

  release(): Promise<ReleaseOutcome> {
    this.#releasing ??= this.#releaseNow();
    return this.#releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal Why it was given back under its holder's hands, if the manager was closed. */
  get closed(): ClosedError | undefined {
    return this.#closed;
  }

  /** @internal The manager closes: work that still runs must learn that its lease is gone. */
  async close(): Promise<void> {
    this.judge();
    if (this.#active) {
      this.#closed = new ClosedError(this.resources);
      this.#controller?.abort(this.#closed);
    }
    await this.release();
  }

  static {
    Object.defineProperty(this.prototype, fencedOffSymbol, {
      value(this: HeldLease, event: FencedOffEvent) {
        this.#fencedOff(event);
      },
    });
  }

  /** Called by a guard that refused this lease's fence. */
  #fencedOff(event: FencedOffEvent): void {
    this.#host.events.emit("fenced-off", { ...this.#about(), ...event });
  }

  /** @internal Declares the loss if it is time. Every public look at the lease starts here. */
  judge(): void {
    if (this.#active && this.#deadline.isOver) this.#lose(this.#whyOver());
  }

  /** @internal The store doubts its own grants, and says which are lost. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    const reason = this.#active ? judge(this.#grant) : undefined;
    if (reason !== undefined) this.#lose(reason);
  }

  /** @internal The store no longer knows, and says of which; true where this one is among them. */
  callIntoDoubt(judge: (grant: Grant) => Error | undefined): boolean {
    const cause = this.#active ? judge(this.#grant) : undefined;
    if (cause === undefined) return false;
    this.#doubt.raise(cause);
    this.#turnDoubtful(cause);
    return true;
  }

  /** @internal When the keeper must wake up for its end. */
  get endDueMs(): number {
    return this.#deadline.dueMs;
  }

  /** @internal Run by the scheduler for a renewal that is due, and for the end. */
  run(): void {
    if (!this.#active) return;
    if (this.#deadline.isDue) this.#lose(this.#whyOver());
    else this.#host.reschedule(this);
  }

  get #active(): boolean {
    return this.#state === "held" || this.#state === "doubtful";
  }

  async #extendNow(ttlMs: number): Promise<void> {
    const started = now(this.#host.clock);
    const settle = this.#doubt.ask();
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
    this.#deadline.prolong(started, validityMs);
    this.renewAtMs = started.monotonicMs + this.#renewEveryMs;
    this.#host.reschedule(this);
    if (this.#host.events.wants("renewed")) {
      const told = { fence: this.#grant.fence, remainingMs: this.remainingMs() };
      this.#host.events.emit("renewed", { ...this.#about(), ...told });
    }
  }

  #turnDoubtful(cause: unknown): void {
    this.#doubt.note(cause);
    if (this.#state !== "held") return;
    this.#state = "doubtful";
    const remainingMs = this.remainingMs();
    this.#host.events.emit("doubtful", { ...this.#about(), remainingMs, cause });
  }

  #lose(reason: LossReason): void {
    const { cause } = this.#doubt;
    // Asked first: an overdue timer, which tells of a stall under way, is about to be cancelled.
    const stalls = this.#host.stalls(this.#began);
    this.#state = "lost";
    this.#loss = new LeaseLostError(this.resources, reason, { cause });
    this.#host.forget(this);
    this.#controller?.abort(this.#loss);
    const told = { fence: this.#grant.fence, reason, heldMs: this.#heldMs(), cause };
    this.#host.events.emit("lost", { ...this.#about(), ...told, ...stalls });
  }

  #whyOver(): LossReason {
    return this.#deadline.whyOver(this.#state === "doubtful" ? "unreachable" : "expired");
  }

  async #releaseNow(): Promise<ReleaseOutcome> {
    this.judge();
    if (this.#active) this.#state = "released";
    this.#host.forget(this);
    const told = await this.#host.store.release(this.#grant);
    // A lease that was lost is not released, even where its keys were still there to be deleted.
    const outcome: ReleaseOutcome =
      this.#loss === undefined ? told : { released: false, reason: this.#loss.reason };
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
    return this.#host.clock.monotonicMs() - this.#began.monotonicMs;
  }

  #about(): { resources: readonly string[]; label: string | undefined } {
    return { resources: this.resources, label: this.label };
  }
}
