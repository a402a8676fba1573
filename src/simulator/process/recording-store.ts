import type {
  AcquireRequest,
  AttemptOutcome,
  ExtendOutcome,
  Grant,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
  Store,
  StoreContext,
  OnExtended,
  Waiting,
} from "../../core/store.ts";
import type { Scene } from "../scene.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import { UnclaimedGrants } from "./unclaimed-grants.ts";

/** Record of one attempt to acquire. `RecordingStore` reads the times, not the library. */
export interface AttemptRecord {
  readonly machine: SimulatedProcess;
  readonly owner: string;
  readonly resources: readonly string[];
  readonly ttlMs: number;
  readonly startedMs: number;
  readonly startedMonotonicMs: number;
  readonly startedWallMs: number;
  /** True if the store has returned the outcome of the attempt. */
  isDecided: boolean;
  completedMs: number | undefined;
  /**
   * Start of the attempt or of the lease's last extension. Votes of nodes before it do not count.
   */
  heldSinceMs: number;
  fence: bigint | undefined;
  /** Time when the store last made the lease doubtful, because a server was replaced. */
  doubtedMs?: number;
  /** Time when the last successful extension returned. */
  extendedMs?: number;
  /**
   * End of the validity by each clock of the process, computed from the options and not by the
   * library.
   */
  validUntilMonotonicMs: number;
  validUntilWallMs: number;
  validUntilSteadyMs: number;
}

export interface RecordingOptions {
  readonly scene: Scene;
  readonly machine: SimulatedProcess;
  readonly validityMs: (ttlMs: number) => number;
  readonly onGranted: (record: AttemptRecord) => void;
  /**
   * Called when a quorum extended or proved the lease. `startedMs` is a time before the first
   * request.
   */
  readonly onConfirmed: (record: AttemptRecord, startedMs: number) => void;
  readonly onReleasing: (owner: string, resources: readonly string[]) => void;
  readonly onReleased: (owner: string, outcome: ReleaseOutcome) => void;
}

/** Wraps the real store. Records the time and the outcome of each call. */
export class RecordingStore {
  readonly byOwner: Map<string, AttemptRecord> = new Map();
  /**
   * Records by the list of resources: all attempts of one call, and its lease, have the same
   * object.
   */
  readonly byResources: WeakMap<readonly string[], AttemptRecord> = new WeakMap();
  readonly unclaimed: UnclaimedGrants = new UnclaimedGrants();
  readonly #options: RecordingOptions;
  #atGrant: (() => void) | undefined;

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  /** Calls `run` when the store has granted the next attempt, before the library receives it. */
  atNextGrant(run: () => void): void {
    this.#atGrant = run;
  }

  over(store: Store): Store {
    return {
      ...store,
      open: (context): OpenStore => {
        const doubt: StoreContext["doubt"] = (judge) => {
          context.doubt((grant) => this.#doubted(grant, judge(grant)));
        };
        return this.#recorded(store.open({ ...context, doubt }));
      },
    };
  }

  /** Records that the store made a lease doubtful, if there is a cause. Returns the cause. */
  #doubted(grant: Grant, cause: Error | undefined): Error | undefined {
    const record = this.byOwner.get(grant.owner);
    if (cause !== undefined && record !== undefined) record.doubtedMs = this.#options.scene.nowMs;
    return cause;
  }

  /** Returns the store with the methods listed here recorded and all other methods unchanged. */
  #recorded(inner: OpenStore): OpenStore {
    const recorded: Partial<OpenStore> = {
      attempt: (request) => this.#attempt(inner, request),
      waiting: (resources) => this.#waiting(inner, resources),
      extend: (grant, ttlMs) => this.#extend(inner, grant, ttlMs),
      prove: (grant) => this.#prove(inner, grant),
      handOver: (grant) => this.#handOver(inner, grant),
      release: (grant) => this.#release(inner, grant),
    };
    if ("extendMany" in inner) {
      recorded.extendMany = (grants, ttlMs, onExtended) => {
        this.#extendMany(inner, grants, ttlMs, onExtended);
      };
    }
    return new Proxy(inner, {
      get(target, name) {
        const own: unknown = Reflect.get(recorded, name);
        if (own !== undefined) return own;
        const method: unknown = Reflect.get(target, name, target);
        return typeof method === "function" ? (method.bind(target) as unknown) : method;
      },
    });
  }

  #waiting(inner: OpenStore, resources: readonly string[]): Waiting | undefined {
    const waiting = inner.waiting?.(resources);
    if (waiting === undefined) return undefined;
    return {
      attempt: (request) => this.#attempt(waiting, request),
      listen: (listener) => waiting.listen(listener),
      leave: () => waiting.leave(),
    };
  }

  async #attempt(
    inner: Pick<OpenStore, "attempt">,
    request: AcquireRequest,
  ): Promise<AttemptOutcome> {
    const { scene, machine, validityMs, onGranted } = this.#options;
    const { owner, resources, ttlMs } = request;
    const startedMonotonicMs = machine.monotonicMs();
    const startedWallMs = machine.wallMs();
    const record: AttemptRecord = {
      machine,
      owner,
      resources,
      ttlMs,
      startedMs: scene.nowMs,
      startedMonotonicMs,
      startedWallMs,
      isDecided: false,
      completedMs: undefined,
      heldSinceMs: scene.nowMs,
      fence: undefined,
      validUntilMonotonicMs: startedMonotonicMs + validityMs(ttlMs),
      validUntilWallMs: startedWallMs + validityMs(ttlMs),
      validUntilSteadyMs: machine.steadyMs() + validityMs(ttlMs),
    };
    this.byOwner.set(owner, record);
    const outcome = await inner.attempt(request);
    record.isDecided = true;
    if (outcome.kind === "granted") {
      record.completedMs = scene.nowMs;
      record.fence = outcome.grant.fence;
      // A grant may create a new list on each access. `byResources` needs one list object.
      Object.defineProperty(outcome.grant, "resources", { value: resources });
      this.byResources.set(resources, record);
      this.unclaimed.onGranted(record);
      onGranted(record);
      this.#atGrant?.();
      this.#atGrant = undefined;
    }
    return outcome;
  }

  async #extend(inner: OpenStore, grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    const extended = this.#beginsToExtend(ttlMs);
    const outcome = await inner.extend(grant, ttlMs);
    extended(grant, outcome);
    return outcome;
  }

  #extendMany(
    inner: OpenStore,
    grants: readonly Grant[],
    ttlMs: number,
    onExtended: OnExtended,
  ): void {
    const extended = this.#beginsToExtend(ttlMs);
    inner.extendMany?.(grants, ttlMs, (place, outcome, received) => {
      const grant = grants[place];
      if (grant !== undefined) extended(grant, outcome);
      onExtended(place, outcome, received);
    });
  }

  /** Reads the clocks before the first request. Returns a function that records the outcome. */
  #beginsToExtend(ttlMs: number): (grant: Grant, outcome: ExtendOutcome) => void {
    const { scene, machine, validityMs, onConfirmed } = this.#options;
    const startedMs = scene.nowMs;
    const monotonicMs = machine.monotonicMs() + validityMs(ttlMs);
    const wallMs = machine.wallMs() + validityMs(ttlMs);
    const steadyMs = machine.steadyMs() + validityMs(ttlMs);
    return (grant, outcome) => {
      const record = this.byOwner.get(grant.owner);
      if (outcome.kind !== "extended" || record === undefined) return;
      // A server was replaced meanwhile: the library ignores this reply and requests it again.
      if (record.doubtedMs !== undefined && startedMs <= record.doubtedMs) return;
      record.validUntilMonotonicMs = Math.max(record.validUntilMonotonicMs, monotonicMs);
      record.validUntilWallMs = Math.max(record.validUntilWallMs, wallMs);
      record.validUntilSteadyMs = Math.max(record.validUntilSteadyMs, steadyMs);
      record.heldSinceMs = startedMs;
      record.extendedMs = scene.nowMs;
      onConfirmed(record, startedMs);
    };
  }

  /**
   * Records a hand-over (the grant passes to the next waiter of the same process) as a new lease.
   * The new lease has a new fence, and the votes, validity and start of the original grant. With
   * that start, the check of fence order allows that a client which was granted a lease in between
   * has a greater fence.
   */
  #handOver(inner: OpenStore, grant: Grant): boolean {
    const before = this.byOwner.get(grant.owner);
    const isPassedOn = inner.handOver?.(grant) ?? false;
    if (!isPassedOn || before === undefined) return isPassedOn;
    const { nowMs } = this.#options.scene;
    const record = { ...before, completedMs: nowMs, fence: grant.fence };
    this.byOwner.set(grant.owner, record);
    this.byResources.set(grant.resources, record);
    this.unclaimed.onGranted(record);
    this.#options.onGranted(record);
    return true;
  }

  /** Returns the store's own promise, so that the recording does not delay the release. */
  #release(inner: OpenStore, grant: Grant): Promise<ReleaseOutcome> {
    const { owner, resources } = grant;
    this.unclaimed.onReleasing(owner);
    this.#options.onReleasing(owner, resources);
    const releasing = inner.release(grant);
    void releasing.then((outcome) => this.#options.onReleased(owner, outcome));
    return releasing;
  }

  async #prove(inner: OpenStore, grant: Grant): Promise<ProveOutcome> {
    const startedMs = this.#options.scene.nowMs;
    const outcome = await inner.prove(grant);
    const record = this.byOwner.get(grant.owner);
    if (outcome.kind === "proven" && record !== undefined) {
      this.#options.onConfirmed(record, startedMs);
    }
    return outcome;
  }
}
