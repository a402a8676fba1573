import { describe, expect, test } from "vitest";
import {
  AcquireTimeoutError,
  createLocks,
  InvalidOptionError,
  LeaseLostError,
  type Locks,
  StoreError,
  UnsupportedError,
} from "../../src/index.ts";
import {
  KeyReusedError,
  type Memo,
  memoryMemo,
  once,
  type OnceOptions,
  OutcomeUnknownError,
} from "../../src/once/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { type ManualClock, manualRuntime, settle } from "../../src/testing/index.ts";

interface Scene {
  readonly locks: Locks;
  readonly others: Locks;
  readonly clock: ManualClock;
  readonly memo: Memo;
}

function open(): Scene {
  const { runtime, clock } = manualRuntime();
  const store = memory();
  const memo = memoryMemo({ nowMs: () => clock.wallMs() });
  const [locks, others] = [createLocks(store, { runtime }), createLocks(store, { runtime })];
  return { locks, others, clock, memo };
}

/** Work that counts its runs, and ends when the test says so. */
class Job {
  runs = 0;
  #finish: (() => void) | undefined;
  #fail: ((error: unknown) => void) | undefined;

  readonly work = async (): Promise<number> => {
    this.runs += 1;
    const run = this.runs;
    await new Promise<void>((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
    });
    return run;
  };

  finish(): void {
    this.#finish?.();
  }

  fail(error: unknown): void {
    this.#fail?.(error);
  }
}

describe("once", () => {
  test("runs the work, and returns its result to every later call", async () => {
    const { locks, others, memo } = open();
    let runs = 0;
    const work = (): object => ({ receipt: "r-1", at: new Date(0), count: (runs += 1) });
    const kept = { receipt: "r-1", at: "1970-01-01T00:00:00.000Z", count: 1 };
    // Also the first caller receives what JSON makes of the result.
    expect(await once(locks, "charge:42", { memo }, work)).toEqual(kept);
    expect(await once(locks, "charge:42", { memo }, work)).toEqual(kept);
    expect(await once(others, "charge:42", { memo }, work)).toEqual(kept);
    expect(runs).toBe(1);
    expect(await once(locks, "charge:43", { memo }, work)).toMatchObject({ count: 2 });
  });

  test("runs work without a result only once as well", async () => {
    const { locks, memo } = open();
    let runs = 0;
    const work = (): void => void (runs += 1);
    expect(await once(locks, "a", { memo }, work)).toBeUndefined();
    expect(await once(locks, "a", { memo }, work)).toBeUndefined();
    expect(runs).toBe(1);
  });

  test("lets a second caller wait for the first, and gives it the same result", async () => {
    const { locks, others, memo, clock } = open();
    const job = new Job();
    const first = once(locks, "a", { memo }, job.work);
    await settle();
    const second = once(others, "a", { memo }, job.work);
    await clock.advance(5_000);
    job.finish();
    await clock.advance(1_000);
    expect([await first, await second]).toEqual([1, 1]);
    expect(job.runs).toBe(1);
  });

  test("rejects a second caller that does not want to wait", async () => {
    const { locks, others, memo } = open();
    const job = new Job();
    const first = once(locks, "a", { memo }, job.work);
    await settle();
    const second = once(others, "a", { memo, wait: 0 }, job.work);
    await expect(second).rejects.toThrow(AcquireTimeoutError);
    job.finish();
    expect(await first).toBe(1);
  });

  test("does not keep an error: the next call runs the work", async () => {
    const { locks, memo } = open();
    const error = new Error("card declined");
    const fails = once(locks, "a", { memo, crash: "refuse" }, () => Promise.reject(error));
    await expect(fails).rejects.toBe(error);
    // The outcome is known, so `refuse` does not refuse.
    expect(await once(locks, "a", { memo, crash: "refuse" }, () => 7)).toBe(7);
  });

  test("runs the work again when its result is no longer kept", async () => {
    const { locks, memo, clock } = open();
    let runs = 0;
    const work = (): number => (runs += 1);
    await once(locks, "a", { memo, keep: "1h" }, work);
    await clock.advance(3_599_999);
    expect(await once(locks, "a", { memo, keep: "1h" }, work)).toBe(1);
    await clock.advance(1);
    expect(await once(locks, "a", { memo, keep: "1h" }, work)).toBe(2);
  });

  test.each([
    ["a text", "a", "b"],
    ["bytes", new Uint8Array([1]), new Uint8Array([2])],
    ["JSON", { amount: 1 }, { amount: 2 }],
    ["a text and the same as JSON", "1", 1],
  ])("refuses a key that is used again for something else: %s", async (_what, one, other) => {
    const { locks, memo } = open();
    expect(await once(locks, "a", { memo, fingerprint: one }, () => 1)).toBe(1);
    expect(await once(locks, "a", { memo, fingerprint: one }, () => 2)).toBe(1);
    expect(await once(locks, "a", { memo }, () => 3)).toBe(1);
    const reused = once(locks, "a", { memo, fingerprint: other }, () => 4);
    await expect(reused).rejects.toThrow(KeyReusedError);
    await expect(reused).rejects.toMatchObject({ code: "KEY_REUSED", resources: ["a"] });
  });

  test("refuses another fingerprint while the work runs, and takes it after a failure", async () => {
    const { locks, others, memo } = open();
    const job = new Job();
    const first = once(locks, "a", { memo, fingerprint: "x" }, job.work);
    await settle();
    const other = once(others, "a", { memo, fingerprint: "y" }, job.work);
    await expect(other).rejects.toThrow(KeyReusedError);
    job.fail(new Error("declined"));
    await expect(first).rejects.toThrow("declined");
    expect(await once(locks, "a", { memo, fingerprint: "y" }, () => 2)).toBe(2);
  });

  test("uses serialise and parse", async () => {
    const { locks, memo } = open();
    const options: OnceOptions<bigint> = { memo, serialise: String, parse: BigInt };
    expect(await once(locks, "a", options, () => 12n)).toBe(12n);
    expect(await once(locks, "a", options, () => 13n)).toBe(12n);
  });

  test.each([
    ["is too long", () => "x".repeat(65_536), /65538 bytes are more than 65536/],
    ["is no JSON", () => 1n, /BigInt/],
  ])("does not run again work whose result %s, and warns", async (_what, work, why) => {
    const { locks, memo } = open();
    const warnings: string[] = [];
    locks.on("warning", ({ code }) => warnings.push(code));
    expect(await once<unknown>(locks, "a", { memo }, work)).toEqual(work());
    expect(warnings).toEqual(["result-not-kept"]);
    const again = once<unknown>(locks, "a", { memo }, () => expect.unreachable());
    await expect(again).rejects.toThrow(StoreError);
    await expect(again).rejects.toThrow(why);
  });
});

describe("once after a crash", () => {
  /** Leaves a record `begun` behind, as a process does that dies in its work. */
  async function crash({ others, memo, clock }: Scene): Promise<bigint> {
    const lease = await others.acquire("a");
    await memo.write(lease, "a", { state: "begun", text: "{}" }, 3_600_000);
    await clock.advance(10_000);
    expect(lease.state).toBe("lost");
    return lease.fence;
  }

  test("runs the work again by default", async () => {
    const scene = open();
    await crash(scene);
    expect(await once(scene.locks, "a", { memo: scene.memo }, () => 2)).toBe(2);
  });

  test("refuses if it is to refuse, until a caller says otherwise", async () => {
    const scene = open();
    const { locks, memo } = scene;
    const fence = await crash(scene);
    const refused = once(locks, "a", { memo, crash: "refuse" }, () => 2);
    await expect(refused).rejects.toThrow(OutcomeUnknownError);
    await expect(refused).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", fence });
    expect(await once(locks, "a", { memo, crash: "run-again" }, () => 3)).toBe(3);
    expect(await once(locks, "a", { memo, crash: "refuse" }, () => 4)).toBe(3);
  });
});

describe("once with a lease that is lost", () => {
  test("refuses the result of the holder that came too late", async () => {
    const { locks, others, memo, clock } = open();
    const [late, next] = [new Job(), new Job()];
    const first = once(locks, "a", { memo }, late.work);
    first.catch(() => undefined);
    await settle();
    await others.break("a");
    const second = once(others, "a", { memo }, next.work);
    await clock.advance(1_000);
    expect([late.runs, next.runs]).toEqual([1, 1]);
    late.finish();
    await expect(first).rejects.toMatchObject({
      code: "LEASE_LOST",
      cause: { code: "FENCE_REJECTED" },
    });
    next.finish();
    expect(await second).toBe(1);
    expect(await once(locks, "a", { memo }, () => 5)).toBe(1);
  });

  test("returns a result that was stored before another holder began", async () => {
    const { locks, others, memo } = open();
    const job = new Job();
    const first = once(locks, "a", { memo }, job.work);
    await settle();
    await others.break("a");
    job.finish();
    expect(await first).toBe(1);
    expect(await once(others, "a", { memo }, () => 5)).toBe(1);
  });

  test("takes the result that an earlier holder writes just before it begins itself", async () => {
    const { locks, others, memo } = open();
    const early = await others.acquire("early");
    let reads = 0;
    const raced: Memo = {
      async read(key) {
        const record = await memo.read(key);
        reads += 1;
        // The earlier holder is done between the second look and the beginning.
        if (reads === 2) {
          await memo.write(early, key, { state: "done", text: `{"result":"9"}` }, 60_000);
        }
        return record;
      },
      write: (...given) => memo.write(...given),
    };
    let runs = 0;
    expect(await once(locks, "a", { memo: raced }, () => (runs += 1))).toBe(9);
    expect(runs).toBe(0);
  });

  test("does not begin the work if the lease is over by then", async () => {
    const { locks, memo, clock } = open();
    const slow: Memo = {
      read: (key) => memo.read(key),
      async write(...given) {
        clock.pause(20_000);
        return await memo.write(...given);
      },
    };
    const late = once(locks, "a", { memo: slow }, () => expect.unreachable());
    await expect(late).rejects.toThrow(LeaseLostError);
  });
});

describe("once with a memo that fails", () => {
  function failing(memo: Memo, failures: number): Memo {
    let left = failures;
    return {
      read: (key) => memo.read(key),
      async write(lease, key, record, keepMs) {
        if (record.state !== "done" || left === 0)
          return await memo.write(lease, key, record, keepMs);
        left -= 1;
        throw new StoreError("the server is away");
      },
    };
  }

  test("tries again to keep the result", async () => {
    const { locks, memo, clock } = open();
    const call = once(locks, "a", { memo: failing(memo, 2) }, () => 1);
    await clock.advance(1_000);
    expect(await call).toBe(1);
    expect(clock.pendingTimers).toBe(0);
  });

  test("says that the work has run if the result cannot be kept", async () => {
    const { locks, memo, clock } = open();
    const call = once(locks, "a", { memo: failing(memo, 3) }, () => 1);
    call.catch(() => undefined);
    await clock.advance(1_000);
    await expect(call).rejects.toThrow("has run, but its result could not be kept");
    await expect(call).rejects.toMatchObject({ code: "STORE", cause: { code: "STORE" } });
  });
});

describe("wrong arguments of once", () => {
  test("are refused before anything is sent", async () => {
    const { locks, memo } = open();
    const wrong: readonly (readonly [string, Partial<OnceOptions>, unknown?])[] = [
      ["memo", { memo: undefined as never }],
      ["memo", { memo: { read: () => 1 } as never }],
      ["keep", { memo, keep: 1 }],
      ["crash", { memo, crash: "again" as never }],
      ["fingerprint", { memo, fingerprint: () => 1 }],
      ["fingerprint", { memo, fingerprint: { big: 1n } }],
      ["serialise", { memo, serialise: 1 as never }],
      ["ttl", { memo, ttl: "1h" }],
      ["memos", { memo, memos: 1 } as never],
      ["work", { memo }, "work"],
    ];
    for (const [option, options, work = () => expect.unreachable()] of wrong) {
      const call = once(locks, "a", options as OnceOptions, work as () => unknown);
      await expect(call).rejects.toThrow(InvalidOptionError);
      await expect(call).rejects.toMatchObject({ option });
    }
    const unnamed = once(locks, 7 as never, { memo }, () => 1);
    await expect(unnamed).rejects.toThrow("`key`");
    expect(await memo.read("a")).toBeUndefined();
  });

  test("include a store without fences", async () => {
    const { runtime } = manualRuntime();
    const store = memory();
    const capabilities = { ...store.capabilities, fencing: false };
    const locks = createLocks({ ...store, capabilities }, { runtime });
    const call = once(locks, "a", { memo: memoryMemo() }, () => 1);
    await expect(call).rejects.toThrow(UnsupportedError);
  });
});
