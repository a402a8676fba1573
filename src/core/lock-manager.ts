import { Acquisition, orThrow, orUndefined, type AcquireContext } from "./acquire/acquisition.ts";
import { CallerSignals } from "./acquire/cancellation.ts";
import { LocalQueues } from "./acquire/local-queue.ts";
import { breakLock, type BreakOptions, type BreakOutcome } from "./break.ts";
import { ClosedError, InvalidOptionError, UnsupportedError } from "./errors.ts";
import type { LockEventName, LockEvents, LockListener } from "./events.ts";
import { DoubtResolver } from "./lease/doubt-resolver.ts";
import { Keeper } from "./lease/keeper.ts";
import type { Lease, LeaseHost } from "./lease/lease.ts";
import { RenewalPhases, Renewals } from "./lease/renewals.ts";
import { Listeners } from "./listeners.ts";
import { runUsing } from "./lease/using.ts";
import type { Locks, Resources, Work } from "./locks.ts";
import { managerParts, type ManagerParts } from "./manager-parts.ts";
import { Nesting } from "./nesting.ts";
import {
  builtInDefaults,
  knownOptions,
  resolveOptions,
  type LockDefaults,
  type LockOptions,
  type ResolvedOptions,
  type StoreBounds,
} from "./options.ts";
import { Owners } from "./owners.ts";
import type { Runtime, Stalls } from "./ports.ts";
import { sortFindings, stallFinding, type Finding } from "./report/doctor.ts";
import { loggable } from "./report/loggable.ts";
import { withCallerFrames } from "./report/caller-frames.ts";
import { resourcesOf } from "./resources.ts";
import type { Inspection, NodeStatus, OpenStore, Store, StoreCapabilities } from "./store.ts";
import { steadyRuntime } from "./time/instant.ts";
import { TimerScheduler } from "./time/scheduler.ts";

/**
 * Creates a manager. `createLocks` passes the runtime of Node.js, unless a test gives another one.
 */
export function lockManager(runtime: Runtime, store: Store, defaults?: LockDefaults): Locks {
  return new LockManager(runtime, store, defaults);
}

class LockManager implements Locks {
  readonly capabilities: StoreCapabilities;
  readonly #context: AcquireContext;
  readonly #nesting: Nesting;
  readonly #signals = new CallerSignals();
  readonly #store: OpenStore;
  /**
   * perf (sequential): the default options of `acquire`, `tryAcquire` and `using` are computed once
   * per manager.
   */
  readonly #defaults: ResolvedOptions;
  readonly #onceDefaults: ResolvedOptions;
  readonly #usingDefaults: ResolvedOptions;
  readonly #bounds: StoreBounds;
  readonly #stalls: Stalls | undefined;
  /** Pending calls other than acquires. `close` waits for all of them. Each has a time limit. */
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;
  readonly #closeListeners = new Set<() => void>();

  constructor(given: Runtime, store: Store, defaults: LockDefaults | undefined) {
    if (typeof store !== "object" || store === null || typeof store.open !== "function") {
      throw new InvalidOptionError("store", "a store such as redis(client) or memory()", store);
    }
    if (defaults !== undefined && "signal" in defaults) {
      throw new InvalidOptionError("signal", "given to a call, not to createLocks", "a default");
    }
    const runtime = steadyRuntime(given);
    const { clock, random, stalls } = runtime;
    const resolved = resolveOptions(defaults, builtInDefaults, store);
    this.capabilities = store.capabilities;
    this.#bounds = store;
    this.#stalls = stalls;
    this.#defaults = { ...resolved, renew: resolved.renew ?? false };
    this.#onceDefaults = { ...this.#defaults, waitMs: 0 };
    this.#usingDefaults = { ...resolved, renew: resolved.renew ?? true };
    const scheduler = new TimerScheduler(clock);
    const events = new Listeners<LockEvents>(runtime.diagnostics);
    this.#store = store.open({
      runtime,
      scheduler,
      events,
      reconsider: (judge) => this.#context.keeper.reconsider(judge),
      doubt: (judge) => this.#context.keeper.doubt(judge),
    });
    const queues = new LocalQueues();
    const host: LeaseHost = {
      clock,
      random,
      scheduler,
      store: this.#store,
      events,
      maxTtlMs: store.maxTtlMs,
      phases: new RenewalPhases(),
      renewals: new Renewals(clock, this.#store),
      doubts: new DoubtResolver(scheduler),
      queues,
      stalls,
    };
    this.#context = {
      runtime,
      scheduler,
      store: this.#store,
      events,
      owners: new Owners(random),
      queues,
      keeper: new Keeper(host),
      calls: new Set(),
    };
    this.#nesting = new Nesting(runtime.asyncContext, host);
    stalls?.open?.();
  }

  acquire(resources: Resources, options?: LockOptions): Promise<Lease> {
    try {
      return this.#call(resources, options, this.#defaults).start(orThrow);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryAcquire(resources: Resources, options?: LockOptions): Promise<Lease | undefined> {
    try {
      return this.#call(resources, options, this.#onceDefaults).start(orUndefined);
    } catch (error) {
      return Promise.reject(error);
    }
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
    const lease = await this.#call(resources, options, this.#usingDefaults).start(orThrow);
    return await runUsing(lease, this.#nesting.within(lease, work));
  }

  /** Returns a call that is ready to start. Throws for wrong arguments, before anything is sent. */
  #call(
    resources: Resources,
    options: LockOptions | undefined,
    defaults: ResolvedOptions,
  ): Acquisition {
    const names = this.#checked(resources);
    if (defaults === this.#onceDefaults && options !== undefined && "wait" in options) {
      throw new InvalidOptionError("wait", "left out: tryAcquire never waits", options.wait);
    }
    const resolved =
      options === undefined ? defaults : resolveOptions(options, defaults, this.#bounds);
    const { signal, waitMs } = resolved;
    if (signal?.aborted === true) throw signal.reason;
    if (waitMs === Infinity) this.#nesting.refuse(names);
    this.#stalls?.watch();
    const call = new Acquisition(this.#context, names, resolved);
    if (signal !== undefined) call.bind(this.#signals, signal);
    this.#context.calls.add(call);
    return call;
  }

  /** Parts for the modules of this package that are built on a manager. */
  get [managerParts](): ManagerParts {
    const { runtime, events, store } = this.#context;
    return {
      runtime,
      events,
      store,
      check: (resources, options) => {
        this.#checked(resources);
        resolveOptions(options, this.#defaults, this.#bounds);
      },
      track: (call) => this.#track(call),
      onClose: (listener) => {
        this.#closeListeners.add(listener);
        return () => void this.#closeListeners.delete(listener);
      },
    };
  }

  async inspect(resource: string): Promise<Inspection> {
    const [name] = this.#checked(resource);
    if (typeof resource !== "string" || name === undefined) {
      throw new InvalidOptionError("resource", "one name", resource);
    }
    return loggable(await this.#track(this.#store.inspect(name)));
  }

  async list(): Promise<readonly Inspection[]> {
    if (this.#closing !== undefined) throw new ClosedError();
    if (this.#store.list === undefined) throw new UnsupportedError("this store cannot list");
    const held = await this.#track(this.#store.list());
    return held.map(loggable).toSorted((a, b) => (a.resource < b.resource ? -1 : 1));
  }

  async break(seen: string | Inspection, options: BreakOptions = {}): Promise<BreakOutcome> {
    knownOptions("options", options, ["foreign"]);
    const { foreign = false } = options;
    if (typeof foreign !== "boolean") {
      throw new InvalidOptionError("foreign", "true or false", foreign);
    }
    const shown = typeof seen === "string" ? await this.inspect(seen) : seen;
    this.#checked(shown.resource);
    return loggable(await this.#track(breakLock(this.#context, this.#defaults, shown, foreign)));
  }

  async nodes(): Promise<readonly NodeStatus[]> {
    if (this.#closing !== undefined) throw new ClosedError();
    const nodes = await this.#track(this.#store.nodes());
    return nodes.map(loggable);
  }

  async doctor(): Promise<readonly Finding[]> {
    if (this.#closing !== undefined) throw new ClosedError();
    const { ttlMs } = this.#defaults;
    const found = await this.#track(this.#store.doctor(ttlMs));
    const stall = stallFinding(this.#stalls?.maxMs(0) ?? 0, ttlMs);
    return sortFindings(stall === undefined ? found : [...found, stall]);
  }

  on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void {
    return this.#context.events.on(name, listener);
  }

  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = this.#closeNow();
      for (const listener of this.#closeListeners) listener();
    }
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

  async #track<Result>(call: Promise<Result>): Promise<Result> {
    this.#underWay.add(call);
    try {
      return await call;
    } catch (error) {
      return await withCallerFrames(error);
    } finally {
      this.#underWay.delete(call);
    }
  }

  async #closeNow(): Promise<void> {
    const { calls, keeper, scheduler } = this.#context;
    const acquiring = [...calls].map((call) => call.end(new ClosedError()));
    await Promise.allSettled(this.#underWay);
    await Promise.all(acquiring);
    // These leases include the ones that were granted after `close` was called.
    const releases = keeper.leases.map((lease) => lease.close());
    await Promise.allSettled(releases);
    await this.#store.close();
    scheduler.end();
    this.#stalls?.close?.();
  }
}
