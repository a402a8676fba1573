import { describe, expect, test } from "vitest";
import * as errors from "../../src/core/errors.ts";

const {
  AcquireTimeoutError,
  ClosedError,
  FenceRejectedError,
  HoldfastError,
  InvalidOptionError,
  isHoldfastError,
  LeaseLostError,
  LeaseReleasedError,
  QuorumError,
  StoreError,
  UnsupportedError,
} = errors;

const every = [
  new AcquireTimeoutError(["a"], { attempts: 3, waitedMs: 10.4 }),
  new QuorumError("acquire", ["a"], [], { quorum: 2 }),
  new LeaseLostError(["a"], "expired"),
  new LeaseReleasedError(["a"]),
  new FenceRejectedError("a", 1n, 2n),
  new StoreError("odd", { resources: ["a"] }),
  new UnsupportedError("no", { resources: ["a"] }),
  new ClosedError(["a"]),
];

test("each error has its own code and name, and lists its resources", () => {
  expect(every.map(({ code }) => code)).toEqual([
    "ACQUIRE_TIMEOUT",
    "QUORUM",
    "LEASE_LOST",
    "LEASE_RELEASED",
    "FENCE_REJECTED",
    "STORE",
    "UNSUPPORTED",
    "CLOSED",
  ]);
  for (const error of every) {
    expect(error).toBeInstanceOf(HoldfastError);
    expect(error.name).toBe(error.constructor.name);
    expect(error.resources).toEqual(["a"]);
    expect(isHoldfastError(error)).toBe(true);
    expect(isHoldfastError(error, error.code)).toBe(true);
    expect(isHoldfastError(error, "INVALID_OPTION")).toBe(false);
  }
});

test("values that only look like an error of ours are not recognised", () => {
  const lookalike = Object.assign(new Error("x"), { code: "LEASE_LOST", resources: [] });
  for (const value of [lookalike, new Error("x"), {}, null, undefined, "LEASE_LOST", 5]) {
    expect(isHoldfastError(value)).toBe(false);
  }
});

test("an error is recognised across two copies of the package", async () => {
  const path = "../../src/core/errors.ts?copy";
  const copy = (await import(path)) as typeof errors;
  const foreign = new copy.LeaseLostError(["a"], "taken");
  expect(foreign).not.toBeInstanceOf(LeaseLostError);
  expect(isHoldfastError(foreign, "LEASE_LOST")).toBe(true);
  expect(copy.isHoldfastError(new ClosedError(), "CLOSED")).toBe(true);
});

test("the brand does not appear when an error is logged or copied", () => {
  expect(Object.keys(new ClosedError()).toSorted()).toEqual(["code", "name", "resources"]);
  expect(JSON.parse(JSON.stringify(new ClosedError()))).toEqual({
    code: "CLOSED",
    message: "the lock manager is closed",
    name: "ClosedError",
    resources: [],
  });
});

describe("messages", () => {
  test("name the holder of the resource, and the time waited", () => {
    const details = { attempts: 3, waitedMs: 99.7, holder: { owner: "x", label: "nightly" } };
    expect(new AcquireTimeoutError(["a", "b"], details).message).toBe(
      '"a", "b" was held by "nightly" until the wait of 100 ms ended (3 attempts)',
    );
  });

  test("name each vote and its cause", () => {
    const votes = [
      { node: "node-1", vote: "granted", ms: 1 },
      { node: "node-2", vote: "failed", ms: 1, cause: new Error("LOADING") },
      { node: "node-3", vote: "unknown", ms: 50, cause: "no answer" },
    ] as const;
    const error = new QuorumError("acquire", ["a"], votes, { quorum: 2, hint: "Look there" });
    expect(error.message).toBe(
      'could not acquire "a": needs 2 of 3 nodes; node-1: granted; node-2: failed (LOADING); ' +
        "node-3: unknown (no answer). Look there",
    );
    expect(error.votes).toBe(votes);
  });

  test.each([
    ["a text", "x".repeat(100), `got "${"x".repeat(80)}"`],
    ["a list", [1], "got a list"],
    ["an empty list", [], "got an empty list"],
    ["an object", {}, "got an object"],
    ["a function", () => undefined, "got a function"],
    ["a bigint", 5n, "got 5n"],
    ["nothing", undefined, "got undefined"],
    ["null", null, "got null"],
    ["not a number", Number.NaN, "got NaN"],
    ["a symbol", Symbol("s"), "got Symbol(s)"],
  ])("show the value %s, cut if it is long", (_, value, shown) => {
    expect(new InvalidOptionError("ttl", "a duration", value).message).toBe(
      `Expected \`ttl\` to be a duration, ${shown}`,
    );
  });

  test("differ for each reason of a lost lease", () => {
    const reasons = ["expired", "taken", "unreachable", "clock", "max-hold"] as const;
    const messages = reasons.map((reason) => new LeaseLostError(["a"], reason).message);
    expect(new Set(messages).size).toBe(reasons.length);
  });

  test("name the fence that was seen, if it is known", () => {
    expect(new FenceRejectedError("a", 1n, 2n).message).toContain("fence 2 was seen");
    expect(new FenceRejectedError("a", 1n, undefined).message).toContain("a greater fence");
  });
});

test("a cause is kept, and the property is missing if there is none", () => {
  const cause = new Error("why");
  expect(new LeaseLostError(["a"], "unreachable", { cause }).cause).toBe(cause);
  expect("cause" in new LeaseLostError(["a"], "expired")).toBe(false);
  expect(new LeaseLostError(["a"], "expired", { result: 5 }).result).toBe(5);
});
