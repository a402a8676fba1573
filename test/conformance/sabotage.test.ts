import { expect, test } from "vitest";
import type { OpenStore, Store, Waiting } from "../../src/core/store.ts";
import { createLocks, StoreError } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import {
  type ConformanceHarness,
  manualRuntime,
  storeConformance,
} from "../../src/testing/index.ts";

/**
 * Ways to break a store, each with the case that must detect it. A suite that these stores pass
 * would prove nothing.
 */
interface Sabotage {
  readonly noticedBy: string;
  readonly store?: Partial<Store>;
  readonly open?: (store: OpenStore) => Partial<OpenStore>;
}

const sabotages: Readonly<Record<string, Sabotage>> = {
  "grants everything": {
    noticedBy: "gives a resource to one manager at a time",
    open: (store) => ({
      attempt: async (request) => {
        const outcome = await store.attempt(request);
        if (outcome.kind !== "held") return outcome;
        const { resources, owner, ttlMs } = request;
        return {
          kind: "granted",
          grant: { resources, owner, fence: 1_000n, validityMs: ttlMs },
        };
      },
    }),
  },
  "lets two of a hundred in at once": {
    noticedBy: "never lets two of 100 tasks in at once",
    open: (store) => {
      let attempts = 0;
      return {
        attempt: (request) => {
          attempts += 1;
          // Every tenth attempt looks at another name.
          const resources = attempts % 10 === 0 ? ["elsewhere"] : request.resources;
          return store.attempt({ ...request, resources });
        },
      };
    },
  },
  "never releases": {
    noticedBy: "gives a resource to one manager at a time",
    open: () => ({ release: async () => ({ released: true }) }),
  },
  "releases what another holds": {
    noticedBy: "lets an expired owner do nothing to the next holder",
    open: (store) => ({
      release: async (grant) => {
        const { resources } = grant;
        const { nodes } = await store.inspect(resources[0] ?? "");
        const owner = nodes[0]?.holder?.owner ?? grant.owner;
        return await store.release({ ...grant, owner });
      },
    }),
  },
  "keeps what it extends no longer than before": {
    noticedBy: "extends a lease, here and in the store",
    open: () => ({ extend: async (_, ttlMs) => ({ kind: "extended", validityMs: ttlMs }) }),
  },
  "cannot be closed": {
    noticedBy: "signals work whose manager is closed",
    open: () => ({ close: () => Promise.reject(new Error("cannot close")) }),
  },
  "never renews": {
    noticedBy: "renews a lease beyond its TTL until it is released",
    open: () => ({ extend: async () => ({ kind: "gone" }) }),
  },
  "gives the same fence twice": {
    noticedBy: "gives each holder a greater fence, or says that it cannot",
    open: (store) => ({
      attempt: async (request) => {
        const outcome = await store.attempt(request);
        if (outcome.kind !== "granted") return outcome;
        return { kind: "granted", grant: { ...outcome.grant, fence: 5n } };
      },
    }),
  },
  "claims no fences and has them": {
    noticedBy: "gives each holder a greater fence, or says that it cannot",
    store: { capabilities: { fencing: false, multiResource: true } },
  },
  "keeps the greatest mark, without regard to its fence (M-c1)": {
    noticedBy: "refuses the same value of another lease (M-c1)",
    open: (store) => ({
      async raiseMark(name, mark, dueMs) {
        const stored = await store.mark?.(name);
        if (stored?.value === mark.value) return { kind: "raised" };
        return (await store.raiseMark?.(name, mark, dueMs)) ?? { kind: "refused" };
      },
    }),
  },
  "lets an earlier holder raise a mark": {
    noticedBy: "refuses a greater value of an earlier lease",
    open: (store) => ({
      raiseMark: async (name, { value }, dueMs) =>
        (await store.raiseMark?.(name, { value, fence: 1n }, dueMs)) ?? { kind: "refused" },
    }),
  },
  "raises a mark for any time (M-c4)": {
    noticedBy: "refuses a value whose time is far ahead of the store's clock (M-c4)",
    open: (store) => ({
      raiseMark: async (name, mark) =>
        (await store.raiseMark?.(name, mark, 0)) ?? { kind: "refused" },
    }),
  },
  "claims no marks and has them": {
    noticedBy: "has no mark before the first is raised, and then shows it to all",
    store: { capabilities: { fencing: true, multiResource: true, marks: false } },
  },
  "fails two waiting attempts of three": {
    noticedBy: "fails no attempt while managers take turns on a healthy store",
    open: (store) => ({ waiting: () => unreliableWait(store) }),
  },
  "counts fences for each lock, and forgets them when it is free": {
    noticedBy: "gives greater fences over many holds and clean-ups",
    open: (store) => {
      let hold = 0n;
      return {
        attempt: async (request) => {
          const outcome = await store.attempt(request);
          if (outcome.kind !== "granted") return outcome;
          hold = (hold + 1n) % 50n;
          return { kind: "granted", grant: { ...outcome.grant, fence: hold + 1n } };
        },
      };
    },
  },
  "lets a manager have a lock twice": {
    noticedBy: "gives a resource to one manager at a time",
    open: (store) => {
      const ours = new Set<string | undefined>();
      return {
        attempt: async (request) => {
          const outcome = await store.attempt(request);
          if (outcome.kind === "granted") ours.add(request.owner);
          if (outcome.kind !== "held" || !ours.has(outcome.holder?.owner)) return outcome;
          const { resources, owner, ttlMs } = request;
          const grant = { resources, owner, fence: 1_000n, validityMs: ttlMs };
          return { kind: "granted", grant };
        },
      };
    },
  },
  "takes what it can get of several": {
    noticedBy: "takes none of several when one of them is held",
    open: (store) => ({
      attempt: async (request) => {
        for (const resource of request.resources) {
          const outcome = await store.attempt({ ...request, resources: [resource] });
          if (outcome.kind !== "granted") return outcome;
        }
        const { resources, owner, ttlMs } = request;
        return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: ttlMs } };
      },
    }),
  },
  "confuses names that normalise alike": {
    noticedBy: "distinguishes names that only look alike",
    open: (store) => ({
      attempt: (request) =>
        store.attempt({ ...request, resources: request.resources.map((r) => r.normalize()) }),
    }),
  },
  "cuts long names": {
    noticedBy: "distinguishes names of 1000 characters by their last",
    open: (store) => ({
      attempt: (request) =>
        store.attempt({ ...request, resources: request.resources.map((r) => r.slice(0, 255)) }),
    }),
  },
  "calls contention a fault": {
    noticedBy: "gives a resource to one manager at a time",
    open: (store) => ({
      attempt: async (request) => {
        const outcome = await store.attempt(request);
        if (outcome.kind === "held") throw new Error("it is locked");
        return outcome;
      },
    }),
  },
  "hides who holds a resource": {
    noticedBy: "says who held the resource until the wait ended",
    open: (store) => ({
      attempt: async (request) => {
        const outcome = await store.attempt(request);
        return outcome.kind === "held" ? { ...outcome, holder: undefined } : outcome;
      },
    }),
  },
  "inspects by taking": {
    noticedBy: "shows a free resource as free, and leaves it so",
    open: (store) => {
      let looks = 0;
      return {
        inspect: async (resource) => {
          looks += 1;
          const seen = await store.inspect(resource);
          const started = { monotonicMs: 0, wallMs: 0 };
          const owner = `inspector ${looks}`;
          const request = { resources: [resource], owner, ttlMs: 1_000, started };
          await store.attempt(request as never);
          return seen;
        },
      };
    },
  },
  "lists what is free": {
    noticedBy: "lists what is held, and nothing else",
    open: (store) => ({
      list: async () => {
        const held = (await store.list?.()) ?? [];
        const [one] = held;
        const free = one?.resource.replace(/}.*/, "}free") ?? "";
        return one === undefined ? held : [...held, { ...one, resource: free }];
      },
    }),
  },
  "breaks every holder": {
    noticedBy: "never breaks a later holder than the one that was seen",
    open: (store) => ({
      break: async (resource) => {
        const { nodes } = await store.inspect(resource);
        const owners = nodes.flatMap(({ holder }) => holder?.owner ?? []);
        return (await store.break?.(resource, owners)) ?? { kind: "gone" };
      },
    }),
  },
  "says that it broke a lock, and leaves it": {
    noticedBy: "breaks a lock, and its holder learns it by the next renewal",
    open: () => ({ break: async () => ({ kind: "broken" }) }),
  },
  "leaves a lock behind": {
    noticedBy: "proves a lease that is held",
    open: (store) => ({
      release: async (grant) => {
        const outcome = await store.release(grant);
        const { resources, owner } = grant;
        await store.attempt({ resources, owner, ttlMs: 10_000_000 } as never);
        return outcome;
      },
    }),
  },
};

/** A wait that fails two of three attempts, as a store with a wrong query would. */
function unreliableWait(store: OpenStore): Waiting {
  let attempts = 0;
  return {
    attempt: async (request) => {
      attempts += 1;
      if (attempts % 3 === 0) return await store.attempt(request);
      const error = new StoreError("the query is wrong");
      return { kind: "failed", error, retryable: true, cleanup: undefined };
    },
    listen: () => undefined,
    leave: async () => undefined,
  };
}

function sabotaged({ store: changes = {}, open = () => ({}) }: Sabotage): ConformanceHarness {
  const sound = memory();
  const { runtime, clock } = manualRuntime();
  const store: Store = {
    ...sound,
    ...changes,
    open(context) {
      const opened = sound.open(context);
      const whole: OpenStore = {
        attempt: (request) => opened.attempt(request),
        extend: (grant, ttlMs) => opened.extend(grant, ttlMs),
        prove: (grant) => opened.prove(grant),
        release: (grant) => opened.release(grant),
        inspect: (resource) => opened.inspect(resource),
        ...(opened.list && { list: () => opened.list?.() ?? Promise.resolve([]) }),
        ...(opened.break && {
          break: (resource, owners) =>
            opened.break?.(resource, owners) ?? Promise.resolve({ kind: "gone" }),
        }),
        mark: async (name) => await opened.mark?.(name),
        raiseMark: async (name, mark, dueMs) =>
          (await opened.raiseMark?.(name, mark, dueMs)) ?? { kind: "refused" },
        nodes: () => opened.nodes(),
        doctor: (ttlMs) => opened.doctor(ttlMs),
        close: () => opened.close(),
      };
      return { ...whole, ...open(opened) };
    },
  };
  return {
    open: async (defaults) => createLocks(store, { ...defaults, runtime }),
    advance: (ms) => clock.advance(ms),
    capabilities: store.capabilities,
    maxTtlMs: store.maxTtlMs,
    namespace: "sabotage",
  };
}

test.each(Object.entries(sabotages))("the suite detects a store that %s", async (_, sabotage) => {
  const noticing = storeConformance.find(({ name }) => name === sabotage.noticedBy);
  if (noticing === undefined) throw new Error(`there is no case "${sabotage.noticedBy}"`);
  await expect(noticing.run(sabotaged({ noticedBy: "" }))).resolves.toBeUndefined();
  await expect(noticing.run(sabotaged(sabotage))).rejects.toThrow();
});

test("the suite detects a store that serves the first waiting manager last", async () => {
  const name = "serves waiting managers in their order, if it says so";
  const noticing = storeConformance.find((each) => each.name === name);
  let [managers, grants] = [0, 0];
  const harness = sabotaged({
    noticedBy: name,
    open: (store) => {
      managers += 1;
      // The first manager holds the lock, the second one waits first.
      const isLast = managers === 2;
      return {
        attempt: async (request) => {
          if (isLast && grants < 4) return { kind: "held", holder: undefined, cleanup: undefined };
          const outcome = await store.attempt(request);
          if (outcome.kind === "granted") grants += 1;
          return outcome;
        },
      };
    },
  });
  await expect(noticing?.run({ ...harness, servesInOrder: true })).rejects.toThrow("the order");
});

test("every case has a unique name", () => {
  const names = storeConformance.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
