import { createLocks, type CreateLocksOptions, type Locks } from "../../src/index.ts";
import type {
  AcquireRequest,
  ExtendOutcome,
  OpenStore,
  ReleaseOutcome,
  Store,
  StoreContext,
} from "../../src/core/store.ts";
import { StoreError } from "../../src/core/errors.ts";
import {
  type ManualClock,
  manualRuntime,
  type ManualRuntimeOptions,
} from "../../src/testing/index.ts";

/** Methods that replace those of a store that grants, extends, proves and releases everything. */
export type Behaviour = Partial<OpenStore> & {
  readonly fencing?: boolean;
  readonly onOpen?: (context: StoreContext) => void;
};

export interface Call {
  readonly name: "attempt" | "extend" | "prove" | "release";
  readonly atMs: number;
}

export interface FakeStore {
  readonly store: Store;
  readonly calls: Call[];
  readonly requests: AcquireRequest[];
  readonly times: (name: Call["name"]) => number[];
}

export const extended = (validityMs: number): ExtendOutcome => ({ kind: "extended", validityMs });
export const failed = { kind: "failed", error: new StoreError("the store is away") } as const;

/**
 * A store without a server. Its replies are set by the test, and it records each call and its
 * time.
 */
export function fakeStore(clock: ManualClock, behaviour: Behaviour = {}): FakeStore {
  const calls: Call[] = [];
  const requests: AcquireRequest[] = [];
  const note = (name: Call["name"]) => calls.push({ name, atMs: clock.monotonicMs() });
  const fence = behaviour.fencing === false ? undefined : 7n;
  const released: ReleaseOutcome = { released: true };
  const open: OpenStore = {
    async attempt(request) {
      note("attempt");
      requests.push(request);
      if (behaviour.attempt !== undefined) return await behaviour.attempt(request);
      const { resources, owner, ttlMs: validityMs } = request;
      return { kind: "granted", grant: { resources, owner, fence, validityMs } };
    },
    async extend(grant, ttlMs) {
      note("extend");
      return (await behaviour.extend?.(grant, ttlMs)) ?? extended(ttlMs);
    },
    async prove(grant) {
      note("prove");
      return (await behaviour.prove?.(grant)) ?? { kind: "proven" };
    },
    async release(grant) {
      note("release");
      return (await behaviour.release?.(grant)) ?? released;
    },
    inspect: behaviour.inspect ?? (() => Promise.reject(new Error("not asked here"))),
    nodes: () => Promise.resolve([]),
    doctor: async (ttlMs) => (await behaviour.doctor?.(ttlMs)) ?? [],
    close: async () => await behaviour.close?.(),
    ...(behaviour.waiting === undefined ? {} : { waiting: behaviour.waiting }),
    ...(behaviour.extendMany === undefined ? {} : { extendMany: behaviour.extendMany }),
    ...(behaviour.gapRemainingMs === undefined ? {} : { gapRemainingMs: behaviour.gapRemainingMs }),
    ...(behaviour.break === undefined ? {} : { break: behaviour.break }),
    ...(behaviour.handOver === undefined ? {} : { handOver: behaviour.handOver }),
  };
  const capabilities = { fencing: behaviour.fencing ?? true, multiResource: true };
  const store: Store = {
    name: "fake",
    capabilities,
    maxTtlMs: 60_000,
    open(context) {
      behaviour.onOpen?.(context);
      return open;
    },
  };
  const times = (name: Call["name"]) =>
    calls.filter((call) => call.name === name).map(({ atMs }) => atMs);
  return { store, calls, requests, times };
}

export interface Scene extends FakeStore {
  readonly locks: Locks;
  readonly clock: ManualClock;
  readonly listenerErrors: readonly unknown[];
}

/** Opens a manager on a fake store and a manual clock. */
export function scene(
  behaviour: Behaviour = {},
  defaults: Omit<CreateLocksOptions, "runtime"> = {},
  options: ManualRuntimeOptions = {},
): Scene {
  const { runtime, clock, listenerErrors } = manualRuntime(options);
  const fake = fakeStore(clock, behaviour);
  const locks = createLocks(fake.store, { ...defaults, runtime });
  return { ...fake, locks, clock, listenerErrors };
}

export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: unknown): void;
}

/** Returns a promise that the test settles, such as a reply that has not arrived yet. */
export function deferred<Value>(): Deferred<Value> {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve: (value) => resolve(value), reject: (error) => reject(error) };
}

/** Resolves after `ms` on the manual clock. Simulates a slow store. */
export function delay(clock: ManualClock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(ms, true, resolve);
  });
}
