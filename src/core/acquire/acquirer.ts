import type { AcquireCall } from "./acquire-call.ts";
import {
  acquire,
  ask,
  checked,
  giveBack,
  mustWaitFirst,
  type AcquireContext,
  type Acquired,
  type FirstAttempt,
  type Refused,
} from "./acquire.ts";
import { CallerSignals } from "./caller-signals.ts";
import { ClosedError } from "../errors.ts";
import { HeldLease } from "../lease/held-lease.ts";
import type { Keeper } from "../lease/keeper.ts";
import type { LeaseHost } from "../lease/lease-host.ts";
import type { LeaseTerms } from "../lease/lease.ts";
import { Nesting } from "./nesting.ts";
import type { ResolvedOptions } from "../options.ts";
import type { Instant } from "../ports.ts";
import { now } from "../time/validity.ts";

/** Turns a refusal into an error, which it throws, or into a value. */
type OnRefused<Nothing> = (call: AcquireCall, refused: Refused) => Nothing;

/** Runs the calls of a manager that acquire, and creates a lease for each grant. */
export class Acquirer {
  readonly #context: AcquireContext;
  readonly #keeper: Keeper;
  readonly #host: LeaseHost;
  readonly #calls = new Set<AcquireCall>();
  readonly #signals = new CallerSignals();
  #onLastEnded: (() => void) | undefined;
  #terms: LeaseTerms | undefined;
  readonly nesting: Nesting;

  constructor(context: AcquireContext, keeper: Keeper, host: LeaseHost) {
    this.#context = context;
    this.#keeper = keeper;
    this.#host = host;
    this.nesting = new Nesting(context.runtime.asyncContext, host);
  }

  /** Called when the manager closes: cancels every call under way. */
  cancel(): void {
    for (const call of this.#calls) call.cancel(new ClosedError());
  }

  /** Resolves when no call is under way. */
  async ended(): Promise<void> {
    if (this.#calls.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onLastEnded = resolve;
    });
  }

  /** Resolves to a lease or to what `onRefused` returns. Rejects as soon as the signal aborts. */
  acquire<Nothing>(
    call: AcquireCall,
    renew: boolean | number,
    onRefused: OnRefused<Nothing>,
  ): Promise<HeldLease | Nothing> {
    const { signal } = call.options;
    if (signal?.aborted === true) throw signal.reason;
    this.nesting.refuse(call);
    const { clock, stalls } = this.#context.runtime;
    stalls?.watch();
    call.bind(this.#signals);
    this.#calls.add(call);
    const work = mustWaitFirst(this.#context, call)
      ? this.#goOn(call, undefined, renew, onRefused)
      : this.#begin(call, now(clock), renew, onRefused);
    return signal === undefined ? work : call.settling(work);
  }

  /**
   * Sends the first attempt. perf (sequential): if it is granted, as usual, there are only two
   * promises, the store's and the caller's. What a wait needs is created by `#goOn`.
   */
  #begin<Nothing>(
    call: AcquireCall,
    started: Instant,
    renew: boolean | number,
    onRefused: OnRefused<Nothing>,
  ): Promise<HeldLease | Nothing> {
    const { clock } = this.#context.runtime;
    const onFault = (error: unknown): never => {
      this.#ended(call);
      throw error;
    };
    try {
      const waitEndsMs = started.monotonicMs + call.options.waitMs;
      return ask(this.#context, this.#context.store, call, started, waitEndsMs).then((told) => {
        try {
          const heard = now(clock);
          const outcome = checked(this.#context, call, 1, started, told, heard);
          if (outcome.kind !== "granted" || call.cancelled) {
            return this.#goOn(call, { started, outcome }, renew, onRefused);
          }
          const acquired = { grant: outcome.grant, started, attempts: 1, waitedMs: 0 };
          const lease = this.#lease(call, acquired, renew, heard);
          this.#ended(call);
          return lease;
        } catch (error) {
          return onFault(error);
        }
      }, onFault);
    } catch (error) {
      return onFault(error);
    }
  }

  #goOn<Nothing>(
    call: AcquireCall,
    first: FirstAttempt | undefined,
    renew: boolean | number,
    onRefused: OnRefused<Nothing>,
  ): Promise<HeldLease | Nothing> {
    const work = this.#wait(call, first, renew, onRefused);
    return call.options.signal === undefined ? call.settling(work) : work;
  }

  async #wait<Nothing>(
    call: AcquireCall,
    first: FirstAttempt | undefined,
    renew: boolean | number,
    onRefused: OnRefused<Nothing>,
  ): Promise<HeldLease | Nothing> {
    try {
      const outcome = await acquire(this.#context, call, first);
      if (!("grant" in outcome)) return onRefused(call, outcome);
      // Cancelled after the grant: the caller already has its rejection, and no lease.
      if (call.cancelled) return await giveBack(this.#context, call, outcome.grant);
      return this.#lease(call, outcome, renew, now(this.#context.runtime.clock));
    } finally {
      this.#ended(call);
    }
  }

  #ended(call: AcquireCall): void {
    call.unbind();
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.#onLastEnded?.();
  }

  #lease(
    { options }: AcquireCall,
    { grant, started, attempts, waitedMs, validityMs }: Acquired,
    renew: boolean | number,
    moment: Instant,
  ): HeldLease {
    const lease = new HeldLease(this.#termsOf(options, renew), grant, started, validityMs);
    this.#keeper.reschedule(lease, moment);
    if (this.#context.events.wants("acquired")) {
      const remainingMs = lease.remainingMs();
      const { resources, fence } = grant;
      const { label } = options;
      const event = { resources, label, fence, attempts, waitedMs, remainingMs };
      this.#context.events.emit("acquired", event);
    }
    return lease;
  }

  /** perf (held): returns the same object for consecutive leases with the same options. */
  #termsOf({ ttlMs, maxHoldMs, label }: ResolvedOptions, renew: boolean | number): LeaseTerms {
    const everyMs = renew === true ? Math.floor(ttlMs / 3) : renew === false ? undefined : renew;
    const terms = this.#terms;
    const same =
      terms?.ttlMs === ttlMs &&
      terms.maxHoldMs === maxHoldMs &&
      terms.renewEveryMs === everyMs &&
      terms.label === label;
    if (same) return terms;
    this.#terms = { host: this.#host, ttlMs, maxHoldMs, renewEveryMs: everyMs, label };
    return this.#terms;
  }
}
