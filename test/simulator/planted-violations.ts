import type { RedisConnection } from "../../src/clients/contract.ts";
import { ClosedError, LeaseLostError } from "../../src/core/errors.ts";
import type { Locks } from "../../src/core/locks.ts";
import type { Grant, OpenStore } from "../../src/core/store.ts";
import type { Violation } from "../../src/simulator/history.ts";
import type { Link } from "../../src/simulator/network/link.ts";
import { lyingStore, type Sabotage } from "../../src/simulator/sabotage.ts";
import type { Scenario, StorePlan, WorkPlan } from "../../src/simulator/scenario.ts";
import type { Scene } from "../../src/simulator/scene.ts";
import type { SimulatorHost } from "../../src/simulator/simulate.ts";

/** One way to break a rule in a world that is otherwise without faults. */
export interface Plant {
  readonly how: string;
  /** Text that the report of the rule must contain. */
  readonly text: RegExp;
  readonly store?: Partial<StorePlan>;
  readonly work?: Partial<WorkPlan>;
  readonly faults?: Scenario["faults"];
  readonly livenessMs?: number;
  readonly stepsMax?: number;
  readonly unhandled?: readonly unknown[];
  readonly sabotage?: Sabotage;
}

const ttlMs = 400;

/** Returns a world of two clients and three nodes, without faults. */
export function calmWorld({ store, work, faults = [], livenessMs = 20_000 }: Plant): Scenario {
  return {
    seed: 1,
    nodes: Array.from({ length: 3 }, () => {
      return { version: "7.0.15", rate: 1, skewMs: 0, uptimeMs: 86_400_000 };
    }),
    clients: Array.from({ length: 2 }, () => ({ rate: 1, wallSkewMs: 0 })),
    link: { delayMs: 2, tailChance: 0, tailMs: 0, strayChance: 0, strayMs: 0, resends: false },
    store: {
      fencing: true,
      admission: "off",
      maxTtlMs: 10_000,
      driftFactor: 0.01,
      driftFixedMs: 2,
      ...store,
    },
    work: {
      resources: ["r"],
      loops: 1,
      ttlMs,
      waitMs: 500,
      thinkMs: 20,
      holdMs: 20,
      minRetryMs: 5,
      maxRetryMs: 20,
      renewChance: 0,
      severalChance: 0,
      abandonChance: 0,
      abortChance: 0,
      extendChance: 0,
      proveChance: 0,
      lateWriteChance: 0,
      ...work,
    },
    faults,
    safetyMs: 5_000,
    livenessMs,
  };
}

export function hostWith(
  drain: () => undefined,
  unhandled: readonly unknown[] = [],
): SimulatorHost {
  return { drain, takeUnhandledRejections: () => unhandled };
}

/** Returns the store with some methods replaced, in the eyes of the library and the checkers. */
function below(lies: (honest: OpenStore, scene: Scene) => Partial<OpenStore>): Sabotage {
  return { store: (store, scene) => lyingStore(store, (honest) => lies(honest, scene)) };
}

/** Replaces methods in the eyes of the library only. */
function above(lies: (honest: OpenStore, scene: Scene) => Partial<OpenStore>): Sabotage {
  return { recorded: (store, scene) => lyingStore(store, (honest) => lies(honest, scene)) };
}

/** Grants every attempt without a request to any node. `fenceOf` gets the number of the grant. */
function grantsAll(fenceOf: (count: number) => bigint): Sabotage {
  let count = 0;
  return below(() => ({
    waiting: () => undefined,
    passOn: () => false,
    attempt: ({ resources, owner, ttlMs: askedMs }) => {
      count += 1;
      const grant: Grant = { resources, owner, fence: fenceOf(count), validityMs: askedMs * 0.98 };
      return Promise.resolve({ kind: "granted", grant });
    },
    extend: (_grant, askedMs) => Promise.resolve({ kind: "extended", validityMs: askedMs * 0.98 }),
    prove: () => Promise.resolve({ kind: "proven" }),
    release: () => Promise.resolve({ released: true }),
  }));
}

/** Grants honestly, with other fences. */
function fencesBy(fenceOf: (count: number) => bigint): Sabotage {
  let count = 0;
  return below((honest) => ({
    waiting: () => undefined,
    passOn: () => false,
    attempt: async (request) => {
      const outcome = await honest.attempt(request);
      if (outcome.kind === "granted") {
        count += 1;
        Object.defineProperty(outcome.grant, "fence", { value: fenceOf(count) });
      }
      return outcome;
    },
  }));
}

/** Returns a connection that sends in another way. */
function passing(link: Link, send: RedisConnection["send"]): RedisConnection {
  return {
    library: link.library,
    topology: link.topology,
    line: () => link.line(),
    subscribe: (channel, listener) => link.subscribe(channel, listener),
    send,
  };
}

/** Sends to a node that has forgotten the lock before each acquire. */
function forgetful(link: Link): RedisConnection["send"] {
  return (key, command) => {
    link.node.server.data.delete("r");
    return link.send(key, command);
  };
}

/** Replaces `acquire` of the lock manager. */
function acquireBy(
  instead: (acquire: Locks["acquire"], scene: Scene) => Locks["acquire"],
): Sabotage {
  return {
    locks: (locks, scene) =>
      new Proxy(locks, {
        get: (target, name) =>
          name === "acquire"
            ? instead((...args) => target.acquire(...args), scene)
            : bound(target, name),
      }),
  };
}

/** Lets each lease report that it is held, also when it is over. */
const alwaysHeld = acquireBy((acquire) => async (...args) => {
  const lease = await acquire(...args);
  return new Proxy(lease, { get: (own, key) => (key === "state" ? "held" : bound(own, key)) });
});

const slowAcquire = acquireBy((acquire, scene) => async (...args) => {
  try {
    return await acquire(...args);
  } finally {
    await later(scene, tooLateMs);
  }
});

/** Lets `using` resolve although the lease was lost. */
const hidesLosses: Sabotage = {
  locks: (locks) =>
    new Proxy(locks, {
      get(target, name) {
        if (name !== "using") return bound(target, name);
        const call: (...args: readonly never[]) => Promise<unknown> = target.using.bind(target);
        return (...args: readonly never[]) =>
          call(...args).catch((error: unknown) => {
            if (!(error instanceof LeaseLostError)) throw error;
          });
      },
    }),
};

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === "function" ? (value.bind(target) as unknown) : value;
}

/** Resolves in the world's time. */
function later(scene: Scene, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    scene.after(delayMs, () => {
      scene.enter();
      resolve();
    });
  });
}

const tooLateMs = 3_000;

/** Lets one method of the store reply far too late, for every caller. */
function slow(
  method: "attempt" | "extend" | "prove" | "release" | "nodes" | "inspect" | "close",
): Sabotage {
  return above((honest, scene) => ({
    waiting: () => undefined,
    [method]: async (...args: readonly never[]) => {
      await later(scene, tooLateMs);
      return (honest[method] as (...args: readonly never[]) => Promise<unknown>)(...args);
    },
  }));
}

/** Lets the library believe in an extension that no node made. */
const believedExtension = above(() => ({
  extend: (_grant, askedMs) => Promise.resolve({ kind: "extended", validityMs: askedMs }),
}));
const longTenures: Partial<WorkPlan> = { holdMs: ttlMs, extendChance: 1 };
const pauses = Array.from({ length: 12 }, (_, index) => {
  const atMs = index * ttlMs;
  return { kind: "pause", atMs, forMs: ttlMs * 0.7, client: index % 2, suspended: false } as const;
});

const late = (call: string, sabotage: Sabotage, work: Partial<WorkPlan> = {}): Plant => {
  const text = new RegExp(`^${call} of client-\\d+ took`);
  return { how: `${call} settles too late`, text, sabotage, work: { loops: 6, ...work } };
};

/** For each rule, ways to break it: one for each place of the sources that reports it. */
export const plants: Readonly<Record<Violation["rule"], readonly Plant[]>> = {
  "fence-unique": [
    { how: "two grants have one fence", text: /given twice/, sabotage: fencesBy(() => 7n) },
  ],
  "fence-order": [
    {
      how: "each grant has a smaller fence",
      text: /is not above/,
      sabotage: fencesBy((count) => BigInt(1_000_000 - count)),
    },
  ],
  "mutex-model": [
    {
      how: "two clients hold the lock at once",
      text: /^owner-aware mutex/,
      sabotage: { connection: (link) => passing(link, forgetful(link)) },
    },
    {
      how: "a later holder has a smaller fence",
      text: /^fenced mutex/,
      sabotage: fencesBy((count) => BigInt(1_000_000 - count)),
    },
  ],
  "stale-confirmation": [
    {
      how: "a proof confirms a lease that another client has",
      text: /received a confirmation of fence/,
      work: { proveChance: 1 },
      sabotage: grantsAll((count) => BigInt(count)),
    },
    {
      how: "an extension confirms a lease that another client has",
      text: /received a confirmation of fence/,
      work: { extendChance: 1 },
      sabotage: grantsAll((count) => BigInt(count)),
    },
  ],
  "late-signal": [
    {
      how: "the library believes an extension that failed",
      text: /received no signal of the end/,
      work: longTenures,
      sabotage: believedExtension,
    },
  ],
  "trust-beyond-validity": [
    {
      how: "a lease that is over is held when its process resumes",
      text: /still trusts/,
      work: { ...longTenures, loops: 2 },
      faults: pauses,
      sabotage: believedExtension,
    },
    { how: "a lease is held after its release", text: /after it was over/, sabotage: alwaysHeld },
  ],
  "too-few-votes": [
    {
      how: "a lease is granted without any node",
      text: /too few nodes/,
      sabotage: grantsAll((count) => BigInt(count)),
    },
  ],
  "vote-given-up": [
    {
      how: "the source of a script is never sent",
      text: /lacked a script/,
      livenessMs: 1_000,
      sabotage: {
        connection: (link) =>
          passing(link, (key, command) =>
            command[0] === "EVAL"
              ? Promise.reject(new Error("the source was not sent"))
              : link.send(key, command),
          ),
      },
    },
  ],
  "false-loss": [
    {
      how: "a release that deleted the lock reports it as taken",
      text: /is called taken/,
      sabotage: below((honest) => ({
        passOn: () => false,
        release: async (grant) => {
          await honest.release(grant);
          return { released: false, reason: "taken" };
        },
      })),
    },
  ],
  "false-release": [
    {
      how: "a release that was never sent reports that the lock is released",
      text: /is called released, and only 0 of 3/,
      work: { ttlMs: 4_000 },
      livenessMs: 100_000,
      sabotage: below(() => ({
        passOn: () => false,
        release: () => Promise.resolve({ released: true }),
      })),
    },
  ],
  "unreported-loss": [
    {
      how: "work that outlived its lease counts as done",
      text: /^using of client-\d+ resolved/,
      work: { holdMs: ttlMs },
      sabotage: hidesLosses,
    },
  ],
  "wrong-reason": [
    {
      how: "a lease is lost as expired long before its end",
      text: /as expired, \d/,
      sabotage: {
        store: (store, scene) => ({
          ...store,
          open: (context) => {
            for (let atMs = 100; atMs < 3_000; atMs += 100) {
              void later(scene, atMs).then(() => context.reconsider(() => "expired"));
            }
            return store.open(context);
          },
        }),
      },
    },
  ],
  "stale-write": [
    {
      how: "two holders write with one fence",
      text: /lost behind a fence/,
      sabotage: grantsAll(() => 7n),
    },
  ],
  "orphan-key": [
    {
      how: "a release is never sent",
      text: /left "r" on node-/,
      work: { ttlMs: 4_000 },
      livenessMs: 100_000,
      sabotage: below(() => ({
        passOn: () => false,
        release: () => Promise.resolve({ released: true }),
      })),
    },
  ],
  "kept-grant": [
    {
      how: "the lease of a call that was aborted is dropped",
      text: /^client-\d+ kept r \(/,
      sabotage: acquireBy((honest) => async (...call) => {
        await honest(...call);
        throw new ClosedError();
      }),
    },
  ],
  "late-promise": [
    late("acquire", slow("attempt")),
    late("an aborted acquire", slowAcquire, { abortChance: 1, holdMs: 200 }),
    late("tryAcquire", slow("attempt")),
    late("using", slow("attempt")),
    late("using", slow("release")),
    late("release", slow("release")),
    late("extend", slow("extend"), { extendChance: 1 }),
    late("prove", slow("prove"), { proveChance: 1 }),
    late("nodes", slow("nodes")),
    late("inspect", slow("inspect")),
    late("close", slow("close")),
    {
      how: "a call never settles",
      text: /^release of client-\d+ never settled/,
      livenessMs: 1_000,
      sabotage: above(() => ({ release: () => new Promise(() => undefined) })),
    },
  ],
  "no-progress": [
    {
      how: "no attempt is granted",
      text: /^nothing for client-/,
      livenessMs: 1_000,
      sabotage: below(() => ({
        waiting: () => undefined,
        attempt: () =>
          Promise.resolve({ kind: "held", holder: undefined, cleanup: undefined } as const),
      })),
    },
    { how: "a world does not end", text: /^no end after 100 events/, stepsMax: 100 },
  ],
  "unexpected-error": [
    {
      how: "a call rejects with an error that is no answer",
      text: /client-\d+: TypeError/,
      sabotage: below(() => ({ prove: () => Promise.reject(new TypeError("not an answer")) })),
      work: { proveChance: 1 },
      livenessMs: 2_000,
    },
    {
      how: "a listener throws",
      text: /thrown by a listener/,
      sabotage: {
        store: (store) => ({
          ...store,
          open: (context) => {
            const error = new Error("thrown by a listener");
            context.runtime.diagnostics.listenerFailed(error);
            return store.open(context);
          },
        }),
      },
    },
  ],
  "unhandled-rejection": [
    {
      how: "a promise rejects without a handler",
      text: /without a handler/,
      unhandled: [new Error("without a handler")],
    },
  ],
};
