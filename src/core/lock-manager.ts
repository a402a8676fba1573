import { AcquireCall } from "./acquire/acquire-call.ts";
import { failure, type AcquireContext, type Refused } from "./acquire/acquire.ts";
import { Acquirer } from "./acquire/acquirer.ts";
import { asked } from "./asked.ts";
import { breakLock, type BreakOptions, type BreakOutcome } from "./acquire/break.ts";
import { sortFindings, stallFinding, type Finding } from "./report/doctor.ts";
import { ClosedError, InvalidOptionError, UnsupportedError } from "./errors.ts";
import { LockEmitter, type Emitter, type LockEventName, type LockListener } from "./events.ts";
import { handOver } from "./acquire/hand-over.ts";
import { Keeper } from "./lease/keeper.ts";
import { Lines } from "./acquire/lines.ts";
import type { LeaseHost } from "./lease/lease-host.ts";
import type { Lease } from "./lease/lease.ts";
import {
  builtInDefaults,
  knownOptions,
  resolveOptions,
  type LockDefaults,
  type LockOptions,
  type ResolvedOptions,
  type StoreBounds,
} from "./options.ts";
import { loggable } from "./report/loggable.ts";
import { Owners } from "./acquire/owners.ts";
import type { Runtime, Stalls } from "./ports.ts";
import { RenewalPhases } from "./lease/renewal-phases.ts";
import { Renewals } from "./lease/renewals.ts";
import { resourcesOf } from "./resources.ts";
import { TimerScheduler } from "./time/scheduler.ts";
import type { Inspection, NodeStatus, OpenStore, Store, StoreCapabilities } from "./store.ts";
import type { Locks, Resources, Work } from "./locks.ts";
import { stallReport } from "./time/stall-report.ts";
import { steadyRuntime } from "./time/steady-clock.ts";
import { runUsing } from "./lease/using.ts";

/** Creates a manager from its ports. `createLocks` calls it with the real ones. */
export function lockManager(runtime: Runtime, store: Store, defaults?: LockDefaults): Locks {
  return new LockManager(runtime, store, defaults);
}

class LockManager implements Locks {
  readonly capabilities: StoreCapabilities;
  readonly #context: AcquireContext;
  readonly #keeper: Keeper;
  readonly #store: OpenStore;
  readonly #events: Emitter;
  readonly #defaults: ResolvedOptions;
  readonly #bounds: StoreBounds;
  readonly #stalls: Stalls | undefined;
  readonly #acquirer: Acquirer;
  /** Calls under way other than acquires. `close` waits for them: each has a time limit. */
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #refuse = (call: AcquireCall, refused: Refused): never => {
    throw failure(this.#context, call, refused, 1, 0);
  };
  #closing: Promise<void> | undefined;

  constructor(given: Runtime, store: Store, defaults: LockDefaults | undefined) {
    if (typeof store !== "object" || store === null || typeof store.open !== "function") {
      throw new InvalidOptionError("store", "a store such as redis(client) or memory()", store);
    }
    if (defaults !== undefined && "signal" in defaults) {
      throw new InvalidOptionError("signal", "given to a call, not to createLocks", "a default");
    }
    const runtime = steadyRuntime(given);
    this.#bounds = store;
    this.#stalls = runtime.stalls;
    this.#defaults = resolveOptions(defaults, builtInDefaults, store);
    const scheduler = new TimerScheduler(runtime.clock);
    const events = new LockEmitter(runtime.diagnostics);
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
    const host: LeaseHost = {
      clock,
      store: this.#store,
      handOver: (lease, grant) => handOver(this.#context, lease, grant),
      over: (grant) => lines.over(grant),
      events,
      maxTtlMs: store.maxTtlMs,
      phases: new RenewalPhases(),
      renewals: new Renewals(clock, this.#store),
      forget: (lease) => keeper.forget(lease),
      stalls: (began) =>
        stallReport({ clock, stalls: runtime.stalls, overdueMs: scheduler.overdueMs }, began),
      reschedule: (lease, moment) => keeper.reschedule(lease, moment),
      renewed: (lease, isRenewed, moment) => keeper.renewed(lease, isRenewed, moment),
    };
    this.#acquirer = new Acquirer(this.#context, keeper, host);
    runtime.stalls?.open?.();
  }

  acquire(resources: Resources, options?: LockOptions): Promise<Lease> {
    return asked(() => {
      const names = this.#checked(resources);
      const resolved = resolveOptions(options, this.#defaults, this.#bounds);
      const call = new AcquireCall(names, resolved);
      return this.#acquirer.acquire(call, resolved.renew ?? false, this.#refuse);
    });
  }

  tryAcquire(resources: Resources, options?: LockOptions): Promise<Lease | undefined> {
    return asked(() => {
      const names = this.#checked(resources);
      if (options !== undefined && "wait" in options) {
        throw new InvalidOptionError("wait", "left out: tryAcquire never waits", options.wait);
      }
      const resolved = { ...resolveOptions(options, this.#defaults, this.#bounds), waitMs: 0 };
      const call = new AcquireCall(names, resolved);
      return this.#acquirer.acquire(call, resolved.renew ?? false, nothingWhereHeld);
    });
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
    const resolved = resolveOptions(options, this.#defaults, this.#bounds);
    const call = new AcquireCall(names, resolved);
    const lease = await this.#acquirer.acquire(call, resolved.renew ?? true, this.#refuse);
    return await runUsing(lease, this.#acquirer.nesting.within(lease, work));
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

  async #track<Result>(call: Promise<Result>): Promise<Result> {
    this.#underWay.add(call);
    try {
      return await call;
    } finally {
      this.#underWay.delete(call);
    }
  }

  async #closeNow(): Promise<void> {
    this.#acquirer.cancel();
    await Promise.allSettled(this.#underWay);
    await this.#acquirer.ended();
    // Includes leases that were granted in the meantime.
    const releases = this.#keeper.leases.map((lease) => lease.close());
    await Promise.allSettled(releases);
    await this.#store.close();
    this.#context.scheduler.end();
    this.#stalls?.close?.();
  }
}

function nothingWhereHeld(_: AcquireCall, refused: Refused): undefined {
  if (refused.kind === "failed") throw refused.error;
}
