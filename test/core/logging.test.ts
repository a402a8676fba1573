import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
  AcquireTimeoutError,
  createLocks,
  FenceRejectedError,
  LeaseLostError,
  type Lease,
  QuorumError,
} from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { manualRuntime } from "../../src/testing/index.ts";
import { scene } from "./fake-store.ts";

/** Returns what a JSON logger writes, parsed. */
function logged(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

async function withLease(check: (lease: Lease) => void): Promise<void> {
  const { runtime } = manualRuntime();
  const locks = createLocks(memory(), { runtime });
  const lease = await locks.acquire(["a", "b"], { label: "report" });
  check(lease);
  await locks.close();
}

// The first fence is the time of the manual clock, in microseconds.
const fence = "1577836800000000";
const view = { resources: ["a", "b"], label: "report", fence, state: "held" };

describe("a lease", () => {
  test("is written as JSON with its public fields, and nothing else", async () => {
    await withLease((lease) => expect(logged({ lease })).toEqual({ lease: view }));
  });

  test("is printed with the same fields, also inside an object", async () => {
    await withLease((lease) => {
      const fields = `resources: [ 'a', 'b' ], label: 'report', fence: '${fence}', state: 'held'`;
      const text = `Lease { ${fields} }`;
      expect(inspect(lease, { breakLength: Infinity })).toBe(text);
      expect(inspect({ lease }, { breakLength: Infinity })).toBe(`{ lease: ${text} }`);
    });
  });

  test("needs no memory for that: the lease has no own property for it", async () => {
    await withLease((lease) => {
      expect(Object.hasOwn(lease, "toJSON")).toBe(false);
      expect(Object.getOwnPropertySymbols(lease)).toEqual([]);
    });
  });

  test("without a fence is written without one, and a released lease with its state", async () => {
    const { locks } = scene({
      attempt: async ({ resources, owner }) => {
        const grant = { resources, owner, fence: undefined, validityMs: 900 };
        return await Promise.resolve({ kind: "granted", grant });
      },
    });
    const lease = await locks.acquire("a");
    await lease.release();
    expect(logged(lease)).toEqual({ resources: ["a"], state: "released" });
    await locks.close();
  });
});

describe("an error", () => {
  const refused = new Error("connect ECONNREFUSED");

  test("is written as JSON with its fields, and a fence as text", () => {
    expect(logged(new FenceRejectedError("a", 1n, 2n ** 60n))).toEqual({
      name: "FenceRejectedError",
      code: "FENCE_REJECTED",
      message: 'fence 1 for "a" is stale: fence 1152921504606846976 was seen',
      resources: ["a"],
      fence: "1",
      seen: "1152921504606846976",
    });
    const holder = { owner: "hf:x", label: "report", fence: 7n };
    const details = { attempts: 2, waitedMs: 10, holder };
    expect(logged(new AcquireTimeoutError(["a"], details))).toMatchObject({
      code: "ACQUIRE_TIMEOUT",
      holder: { owner: "hf:x", label: "report", fence: "7" },
    });
  });

  test("is written with the votes of the nodes and the messages of its causes", () => {
    const votes = [{ node: "one", vote: "failed", ms: 3, cause: refused }] as const;
    const error = new QuorumError("acquire", ["a"], votes, { quorum: 1, cause: refused });
    expect(logged({ error })).toMatchObject({
      error: {
        code: "QUORUM",
        resources: ["a"],
        votes: [{ node: "one", vote: "failed", ms: 3, cause: "connect ECONNREFUSED" }],
        cause: "connect ECONNREFUSED",
      },
    });
  });

  test("is written without the result of the work, and with any thrown value as text", () => {
    const cycle: Record<string, unknown> = { fence: 1n };
    cycle["self"] = cycle;
    const causes = [cycle, Object.create(null), Symbol("x"), null, 5n];
    const written = causes.map((cause) => {
      return logged(new LeaseLostError(["a"], "taken", { cause, result: cycle }));
    });
    const texts = ["[object Object]", "an object that has no text", "Symbol(x)", "null", "5"];
    expect(written).toMatchObject(texts.map((cause) => ({ reason: "taken", cause })));
    for (const error of written) expect(error).not.toHaveProperty("result");
  });

  test("is printed as Node.js prints errors: stack, code, resources, cause", () => {
    const text = inspect(new LeaseLostError(["a"], "taken", { cause: refused }));
    expect(text).toMatch(/^LeaseLostError: the lease on "a" was lost/);
    expect(text).toMatch(/logging\.test\.ts/);
    for (const part of ["code: 'LEASE_LOST'", "resources: [ 'a' ]", "reason: 'taken'", "[cause]"]) {
      expect(text).toContain(part);
    }
  });
});

describe("an event", () => {
  test("is written as JSON with fences as text and errors as messages", async () => {
    const { locks } = scene({
      extend: async () => {
        const error = new QuorumError("extend", ["a"], [], { quorum: 1 });
        return await Promise.resolve({ kind: "failed", error });
      },
    });
    const events: unknown[] = [];
    for (const name of ["acquired", "doubtful", "released"] as const) {
      locks.on(name, (event) => events.push({ name, ...(logged(event) as object) }));
    }
    const lease = await locks.acquire("a", { label: "report" });
    await expect(lease.extend()).rejects.toThrow("could not extend");
    await lease.release();
    const about = { resources: ["a"], label: "report" };
    expect(events).toMatchObject([
      { name: "acquired", ...about, fence: String(lease.fence), attempts: 1 },
      { name: "doubtful", ...about, cause: 'could not extend "a"' },
      { name: "released", ...about, released: true },
    ]);
    await locks.close();
  });

  test("is otherwise a plain object: its fence is a bigint, and no method is visible", async () => {
    const { locks } = scene();
    const events: unknown[] = [];
    locks.on("acquired", (event) => events.push(event));
    await locks.acquire("a");
    const [event] = events as [object];
    expect(event).toStrictEqual({ ...event });
    expect(event).toHaveProperty("fence", expect.any(BigInt));
    expect(Object.keys(event)).not.toContain("toJSON");
    expect(inspect(event)).toMatch(/^\{\n? *resources: \[ 'a' \]/);
    await locks.close();
  });
});

test("inspections, lists, broken locks and node states are written as JSON", async () => {
  const locks = createLocks(memory());
  const { fence } = await locks.acquire("a", { label: "report" });
  const seen = await locks.inspect("a");
  const holder = { label: "report", fence: String(fence) };
  expect(logged(seen)).toMatchObject({ resource: "a", ...holder, nodes: [{ holder }] });
  expect(logged(await locks.list())).toMatchObject([{ resource: "a", ...holder }]);
  expect(logged(await locks.nodes())).toMatchObject([{ node: "memory" }]);
  const broken = await locks.break(seen);
  expect(broken).toHaveProperty("fence", expect.any(BigInt));
  expect(logged(broken)).toMatchObject({
    broken: true,
    holders: [holder],
    fence: expect.stringMatching(/^\d+$/),
  });
  await locks.close();
});
