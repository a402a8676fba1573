import type {
  AcquireRequest,
  AttemptOutcome,
  ExtendOutcome,
  Grant,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
  Store,
  TellExtended,
  Waiting,
} from "../../core/store.ts";
import type { Scene } from "../scene.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** One attempt as seen from outside the store, with the checkers' own look at the clocks. */
export interface AttemptRecord {
  readonly machine: SimulatedProcess;
  readonly owner: string;
  readonly resources: readonly string[];
  readonly ttlMs: number;
  readonly startedMs: number;
  readonly startedMonotonicMs: number;
  readonly startedWallMs: number;
  /** The store has said what came of it. */
  isDecided: boolean;
  completedMs: number | undefined;
  /** When its grant or its last extension began: older words of nodes are no part of it. */
  heldSinceMs: number;
  fence: bigint | undefined;
  /** By the process's own clocks; the checkers compute them anew from the options. */
  validUntilMonotonicMs: number;
  validUntilWallMs: number;
  validUntilSteadyMs: number;
}

export interface RecordingOptions {
  readonly scene: Scene;
  readonly machine: SimulatedProcess;
  readonly validityMs: (ttlMs: number) => number;
  readonly onGranted: (record: AttemptRecord) => void;
  /** A quorum extended it, or proved it; `startedMs` is from before the first question. */
  readonly onConfirmed: (record: AttemptRecord, startedMs: number) => void;
  readonly onReleasing: (owner: string, resources: readonly string[]) => void;
  readonly onReleased: (owner: string, outcome: ReleaseOutcome) => void;
}

/** Passes every call on to the real store, and writes down when it was made and what came of it. */
export class RecordingStore {
  readonly byOwner: Map<string, AttemptRecord> = new Map();
  /** The list of resources is one object for all attempts of a call, and for its lease. */
  readonly byResources: WeakMap<readonly string[], AttemptRecord> = new WeakMap();
  readonly #options: RecordingOptions;

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  over(store: Store): Store {
    return {
      ...store,
      open: (context): OpenStore => this.#recorded(store.open(context)),
    };
  }

  /** Whatever a store can do besides, it goes on doing. */
  #recorded(inner: OpenStore): OpenStore {
    const recorded: Partial<OpenStore> = {
      attempt: (request) => this.#attempt(inner, request),
      waiting: (resources) => this.#waiting(inner, resources),
      extend: (grant, ttlMs) => this.#extend(inner, grant, ttlMs),
      prove: (grant) => this.#prove(inner, grant),
      passOn: (grant) => this.#passOn(inner, grant),
      release: (grant) => this.#release(inner, grant),
    };
    if ("extendMany" in inner) {
      recorded.extendMany = (grants, ttlMs, tell) => {
        this.#extendMany(inner, grants, ttlMs, tell);
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
      // A grant may make its list anew at every look: here it must be the one that is known.
      Object.defineProperty(outcome.grant, "resources", { value: resources });
      this.byResources.set(resources, record);
      onGranted(record);
    }
    return outcome;
  }

  async #extend(inner: OpenStore, grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    const extended = this.#beginsToExtend(ttlMs);
    const outcome = await inner.extend(grant, ttlMs);
    extended(grant, outcome);
    return outcome;
  }

  #extendMany(inner: OpenStore, grants: readonly Grant[], ttlMs: number, tell: TellExtended): void {
    const extended = this.#beginsToExtend(ttlMs);
    inner.extendMany?.(grants, ttlMs, (place, outcome, heard) => {
      const grant = grants[place];
      if (grant !== undefined) extended(grant, outcome);
      tell(place, outcome, heard);
    });
  }

  /** Looks at the clocks before the first question; returns what to call with its outcome. */
  #beginsToExtend(ttlMs: number): (grant: Grant, outcome: ExtendOutcome) => void {
    const { scene, machine, validityMs, onConfirmed } = this.#options;
    const startedMs = scene.nowMs;
    const monotonicMs = machine.monotonicMs() + validityMs(ttlMs);
    const wallMs = machine.wallMs() + validityMs(ttlMs);
    const steadyMs = machine.steadyMs() + validityMs(ttlMs);
    return (grant, outcome) => {
      const record = this.byOwner.get(grant.owner);
      if (outcome.kind !== "extended" || record === undefined) return;
      record.validUntilMonotonicMs = Math.max(record.validUntilMonotonicMs, monotonicMs);
      record.validUntilWallMs = Math.max(record.validUntilWallMs, wallMs);
      record.validUntilSteadyMs = Math.max(record.validUntilSteadyMs, steadyMs);
      record.heldSinceMs = startedMs;
      onConfirmed(record, startedMs);
    };
  }

  /**
   * A tenure of its own, under a fence of its own, with the votes and the validity of the last. It
   * began with the grant: somebody whom another granted it since has a greater fence, and rightly.
   */
  #passOn(inner: OpenStore, grant: Grant): boolean {
    const before = this.byOwner.get(grant.owner);
    const isPassedOn = inner.passOn?.(grant) ?? false;
    if (!isPassedOn || before === undefined) return isPassedOn;
    const { nowMs } = this.#options.scene;
    const record = { ...before, completedMs: nowMs, fence: grant.fence };
    this.byOwner.set(grant.owner, record);
    this.byResources.set(grant.resources, record);
    this.#options.onGranted(record);
    return true;
  }

  /** Returns the store's own promise, so that nothing runs later than it would. */
  #release(inner: OpenStore, grant: Grant): Promise<ReleaseOutcome> {
    const { owner, resources } = grant;
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
