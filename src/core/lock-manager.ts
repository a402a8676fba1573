import { acquire, failure, type AcquireContext } from "./acquire.ts";
import { breakLock, type BreakOutcome } from "./break.ts";
import { Cancellation } from "./cancellation.ts";
import { sortFindings, stallFinding, type Finding } from "./doctor.ts";
import { ClosedError, InvalidOptionError, UnsupportedError } from "./errors.ts";
import { Emitter, type LockEventName, type LockListener } from "./events.ts";
import { Keeper } from "./keeper.ts";
import { HeldLease } from "./held-lease.ts";
import { Lines } from "./lines.ts";
import type { LeaseHost } from "./lease-host.ts";
import type { Lease, LeaseTerms } from "./lease.ts";
import {
  builtInDefaults,
  resolveOptions,
  type LockDefaults,
  type LockOptions,
  type ResolvedOptions,
} from "./options.ts";
import { Owners } from "./owners.ts";
import type { Runtime, Stalls } from "./ports.ts";
import { resourcesOf } from "./resources.ts";
import { Scheduler } from "./scheduler.ts";
import type { Inspection, NodeStatus, OpenStore, Store, StoreCapabilities } from "./store.ts";
import type { Locks, Resources, Work } from "./locks.ts";
import { stallReport } from "./stall-report.ts";
import { runUsing } from "./using.ts";

type Refused = Exclude<Awaited<ReturnType<typeof acquire>>, { grant: unknown }>;

/** Puts a manager together from its ports. `createLocks` in the root calls it with real ones. */
export function lockManager(runtime: Runtime, store: Store, defaults?: LockDefaults): Locks {
  return new LockManager(runtime, store, defaults);
}

class LockManager implements Locks {
  readonly capabilities: StoreCapabilities;
  readonly #context: AcquireContext;
  readonly #keeper: Keeper;
  readonly #host: LeaseHost;
  readonly #store: OpenStore;
  readonly #events: Emitter;
  readonly #defaults: ResolvedOptions;
  readonly #ttlMaxMs: number;
  readonly #stalls: Stalls | undefined;
  /** Acquires under way. `close` ends them, and waits for the last to be gone. */
  readonly #waits = new Set<Cancellation>();
  #onLastWait: (() => void) | undefined;
  /** Other calls under way, which `close` waits for: each of them is bounded. */
  readonly #underWay = new Set<Promise<unknown>>();
  #terms: LeaseTerms | undefined;
  #closing: Promise<void> | undefined;

  constructor(runtime: Runtime, store: Store, defaults: LockDefaults | undefined) {
    if (typeof store !== "object" || store === null || typeof store.open !== "function") {
      throw new InvalidOptionError("store", "a store such as redis(client) or memory()", store);
    }
    if (defaults !== undefined && "signal" in defaults) {
      throw new InvalidOptionError("signal", "given to a call, not to createLocks", "a default");
    }
    this.#ttlMaxMs = store.ttlMaxMs;
    this.#stalls = runtime.stalls;
    this.#defaults = resolveOptions(defaults, builtInDefaults, store.ttlMaxMs);
    const scheduler = new Scheduler(runtime.clock);
    const events = new Emitter(runtime.diagnostics);
    const keeper = new Keeper(scheduler, runtime.random);
    this.capabilities = store.capabilities;
    this.#events = events;
    this.#keeper = keeper;
    this.#store = store.open({
      runtime,
      scheduler,
      events,
      reconsider: (judge) => keeper.reconsider(judge),
      doubt: (judge) => keeper.doubt(judge),
    });
    const owners = new Owners(runtime.random);
    const lines = new Lines();
    this.#context = { runtime, scheduler, store: this.#store, events, owners, lines };
    const { clock } = runtime;
    this.#host = {
      clock,
      epochMs: Math.floor(clock.wallMs()),
      store: this.#store,
      over: (grant) => lines.over(grant),
      events,
      ttlMaxMs: store.ttlMaxMs,
      forget: (lease) => keeper.forget(lease),
      stalls: (began) =>
        stallReport({ clock, stalls: runtime.stalls, overdueMs: scheduler.overdueMs }, began),
      reschedule: (lease) => keeper.reschedule(lease),
    };
  }

  async acquire(resources: Resources, options?: LockOptions): Promise<Lease> {
    const names = this.#checked(resources);
    const resolved = resolveOptions(options, this.#defaults, this.#ttlMaxMs);
    return leaseOf(names, await this.#attempts(names, resolved, resolved.renew ?? false));
  }

  async tryAcquire(resources: Resources, options?: LockOptions): Promise<Lease | undefined> {
    const names = this.#checked(resources);
    if (options !== undefined && "wait" in options) {
      throw new InvalidOptionError("wait", "left out: tryAcquire never waits", options.wait);
    }
    const resolved = { ...resolveOptions(options, this.#defaults, this.#ttlMaxMs), waitMs: 0 };
    const lease = await this.#attempts(names, resolved, resolved.renew ?? false);
    if (lease instanceof HeldLease) return lease;
    if (lease.kind === "held") return undefined;
    throw lease.error;
  }

  async using<Result>(
    resources: Resources,
    optionsOrWork: LockOptions | Work<Result>,
    maybeWork?: Work<Result>,
  ): Promise<Result> {
    const work = typeof optionsOrWork === "function" ? optionsOrWork : maybeWork;
    const options = typeof optionsOrWork === "function" ? undefined : optionsOrWork;
    if (typeof work !== "function") {
      throw new InvalidOptionError("work", "a function that takes the lease", work);
    }
    const names = this.#checked(resources);
    const resolved = resolveOptions(options, this.#defaults, this.#ttlMaxMs);
    const lease = leaseOf(names, await this.#attempts(names, resolved, resolved.renew ?? true));
    return await runUsing(lease, work);
  }

  async inspect(resource: string): Promise<Inspection> {
    const [name] = this.#checked(resource);
    if (typeof resource !== "string" || name === undefined) {
      throw new InvalidOptionError("resource", "one name", resource);
    }
    return await this.#track(this.#store.inspect(name));
  }

  async list(): Promise<readonly Inspection[]> {
    if (this.#closing !== undefined) throw new ClosedError();
    if (this.#store.list === undefined) throw new UnsupportedError("this store cannot list");
    const held = await this.#track(this.#store.list());
    return held.toSorted((a, b) => (a.resource < b.resource ? -1 : 1));
  }

  async break(seen: string | Inspection): Promise<BreakOutcome> {
    const shown = typeof seen === "string" ? await this.inspect(seen) : seen;
    this.#checked(shown.resource);
    return await this.#track(breakLock(this.#context, this.#defaults, shown));
  }

  async nodes(): Promise<readonly NodeStatus[]> {
    if (this.#closing !== undefined) throw new ClosedError();
    return await this.#track(this.#store.nodes());
  }

  async doctor(): Promise<readonly Finding[]> {
    if (this.#closing !== undefined) throw new ClosedError();
    const { ttlMs } = this.#defaults;
    const found = await this.#track(this.#store.doctor(ttlMs));
    const stall = stallFinding(this.#stalls?.maxMs(0) ?? 0, ttlMs);
    return sortFindings(stall === undefined ? found : [...found, stall]);
  }

  on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void {
    if (typeof listener !== "function") {
      throw new InvalidOptionError("listener", "a function", listener);
    }
    return this.#events.on(name, listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeNow();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #checked(resources: unknown): readonly string[] {
    const names = resourcesOf(resources);
    if (this.#closing !== undefined) throw new ClosedError(names);
    if (names.length > 1 && !this.capabilities.multiResource) {
      throw new UnsupportedError("this store cannot lock several resources at once", {
        resources: names,
      });
    }
    return names;
  }

  async #attempts(
    names: readonly string[],
    options: ResolvedOptions,
    renew: boolean | number,
  ): Promise<HeldLease | Refused> {
    const { signal } = options;
    if (signal?.aborted === true) throw signal.reason;
    this.#stalls?.watch();
    const cancellation = new Cancellation();
    const onAbort = signal && ((): void => cancellation.cancel(signal.reason));
    if (onAbort !== undefined) signal?.addEventListener("abort", onAbort);
    this.#waits.add(cancellation);
    try {
      const outcome = await acquire(this.#context, names, options, cancellation);
      return "grant" in outcome ? this.#lease(outcome, options, renew) : outcome;
    } finally {
      this.#waits.delete(cancellation);
      if (this.#waits.size === 0) this.#onLastWait?.();
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
    }
  }

  #lease(
    acquired: Extract<Awaited<ReturnType<typeof acquire>>, { grant: unknown }>,
    options: ResolvedOptions,
    renew: boolean | number,
  ): HeldLease {
    const { grant, started, attempts, waitedMs } = acquired;
    const { label } = options;
    const lease = new HeldLease(this.#termsOf(options, renew), grant, started);
    this.#keeper.reschedule(lease);
    if (this.#events.wants("acquired")) {
      const remainingMs = lease.remainingMs();
      const { resources, fence } = grant;
      const event = { resources, label, fence, attempts, waitedMs, remainingMs };
      this.#events.emit("acquired", event);
    }
    return lease;
  }

  /** Kept for all leases that come with the same options, one after the other. */
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

  async #track<Result>(call: Promise<Result>): Promise<Result> {
    this.#underWay.add(call);
    try {
      return await call;
    } finally {
      this.#underWay.delete(call);
    }
  }

  async #closeNow(): Promise<void> {
    for (const wait of this.#waits) wait.cancel(new ClosedError());
    await Promise.allSettled(this.#underWay);
    if (this.#waits.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onLastWait = resolve;
      });
    }
    // Whatever was granted in the meantime is kept by now, and goes with the rest.
    const releases = this.#keeper.leases.map((lease) => lease.close());
    await Promise.allSettled(releases);
    await this.#store.close();
    this.#context.scheduler.end();
  }
}

function leaseOf(names: readonly string[], outcome: HeldLease | Refused): HeldLease {
  if (outcome instanceof HeldLease) return outcome;
  throw failure(names, outcome, 1, 0);
}
