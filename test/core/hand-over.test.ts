import { describe, expect, test } from "vitest";
import type { AcquireRequest, Grant } from "../../src/core/store.ts";
import type { Lease } from "../../src/index.ts";
import { settle } from "../../src/testing/index.ts";
import { deferred, extended, failed, type Behaviour } from "./fake-store.ts";
import { attemptOn, lockTable, type Table } from "./lock-table.ts";

interface Reserved extends Grant {
  fence: bigint;
}

/**
 * Returns a store that reserves ten fences per grant, and lets the manager hand the lock over with
 * them.
 */
function reserving(more: (table: () => Table) => Behaviour = () => ({})): Table {
  let granted = 0n;
  return lockTable((table) => ({
    async attempt(request: AcquireRequest) {
      const outcome = attemptOn(table(), request);
      if (outcome.kind !== "granted") return outcome;
      granted += 10n;
      return { kind: "granted", grant: { ...outcome.grant, fence: granted - 9n } };
    },
    handOver(grant: Grant) {
      if (grant.fence === undefined || grant.fence % 10n === 0n) return false;
      (grant as Reserved).fence = grant.fence + 1n;
      return true;
    },
    ...more(table),
  }));
}

/** Returns one lease that was granted to a waiter, and the calls that wait behind it. */
async function lineOf(
  { locks }: Table,
  behind: number,
  options: Parameters<Table["locks"]["acquire"]>[1] = {},
): Promise<{ first: Lease; calls: Promise<Lease>[] }> {
  const holder = await locks.acquire("a");
  const front = locks.acquire("a");
  await settle();
  const calls = Array.from({ length: behind }, () => locks.acquire("a", options));
  await settle();
  await holder.release();
  return { first: await front, calls };
}

/** Returns the requests to the store since now. */
function askedSince(table: Table): () => string[] {
  const from = table.calls.length;
  return () => table.calls.slice(from).map(({ name }) => name);
}

async function taken(call: Promise<Lease> | undefined): Promise<Lease> {
  await settle();
  const lease = await Promise.race([call, settle().then(() => undefined)]);
  if (lease === undefined) throw new Error("it still waits");
  return lease;
}

describe("a release while calls of the same manager wait", () => {
  test("hands the lock over with a greater fence, and only the last one sends a release to the store", async () => {
    const table = reserving();
    const { first, calls } = await lineOf(table, 3);
    const asked = askedSince(table);
    let before = first;
    const acquired: unknown[] = [];
    table.locks.on("acquired", ({ attempts, fence }) => acquired.push([attempts, fence]));
    for (const call of calls) {
      const fence = before.fence;
      expect(await before.release()).toEqual({ released: true, handedOver: true });
      const lease = await taken(call);
      expect([before.state, lease.state]).toEqual(["released", "held"]);
      // The released lease keeps its fence: with the new one, its late writes would pass every
      // guard.
      expect([before.fence, lease.fence]).toEqual([fence, fence + 1n]);
      await expect(before.extend()).rejects.toThrow("already released");
      before = lease;
    }
    expect(acquired).toEqual([12n, 13n, 14n].map((fence) => [0, fence]));
    expect(asked()).toEqual([]);
    await before.release();
    expect(asked()).toEqual(["release"]);
    expect(table.entries.size).toBe(0);
  });

  test("leaves the next holder the rest of the validity, and no more", async () => {
    const table = reserving();
    const { first, calls } = await lineOf(table, 1);
    await table.clock.advance(20);
    await first.release();
    const lease = await taken(calls[0]);
    expect(lease.remainingMs()).toBe(9_980);
    await table.clock.advance(9_979);
    expect(lease.state).toBe("lost");
    expect(lease.signal.aborted).toBe(true);
  });

  test("sends a request to the store if maxHold has brought the end of the lease forward", async () => {
    const table = reserving();
    const holder = await table.locks.acquire("a");
    const front = table.locks.acquire("a", { maxHold: 9_500 });
    await settle();
    const behind = table.locks.acquire("a");
    await settle();
    await holder.release();
    const first = await front;
    expect(first.remainingMs()).toBe(9_500);
    expect(await first.release()).toEqual({ released: true });
    expect((await taken(behind)).remainingMs()).toBe(10_000);
  });

  test("sends a request to the store if the manager's turn is over", async () => {
    const table = reserving();
    const { first, calls } = await lineOf(table, 2);
    const asked = askedSince(table);
    await table.clock.advance(24);
    await first.release();
    const second = await taken(calls[0]);
    expect(asked()).toEqual([]);
    await table.clock.advance(1);
    await second.release();
    await taken(calls[1]);
    expect(asked()).toEqual(["release", "attempt"]);
  });

  test("sends a request to the store if no reserved fence is left", async () => {
    const table = reserving();
    const { first, calls } = await lineOf(table, 10);
    const asked = askedSince(table);
    let lease = first;
    for (const call of calls.slice(0, 9)) {
      await lease.release();
      lease = await taken(call);
    }
    expect([asked(), lease.fence]).toEqual([[], 20n]);
    await lease.release();
    expect((await taken(calls[9])).fence).toBe(21n);
    expect(asked()).toEqual(["release", "attempt"]);
  });

  test.each([
    ["another TTL", { ttl: "11s" }],
    ["another label", { label: "other" }],
  ] as const)("sends a request to the store if the next call wants %s", async (_, options) => {
    const table = reserving();
    const { first, calls } = await lineOf(table, 1, options);
    const asked = askedSince(table);
    await first.release();
    await taken(calls[0]);
    expect(asked()).toEqual(["release", "attempt"]);
  });

  test("sends a request to the store if the validity left is too short, or longer than the next call's TTL", async () => {
    // The holder may have held it for long, or its clock may have been set forward.
    const short = reserving();
    const { first, calls } = await lineOf(short, 1);
    short.clock.stepWall(2_501);
    const asked = askedSince(short);
    await first.release();
    await taken(calls[0]);
    expect(asked()).toEqual(["release", "attempt"]);

    const long = reserving(() => ({ extend: async () => extended(20_000) }));
    const line = await lineOf(long, 1);
    await line.first.extend("20s");
    const askedOfLong = askedSince(long);
    await line.first.release();
    await taken(line.calls[0]);
    expect(askedOfLong()).toEqual(["release", "attempt"]);
  });

  test("sends a request to the store while an extension is under way, and if the lease is doubtful", async () => {
    const reply = deferred<typeof failed>();
    const table = reserving(() => ({ extend: () => reply.promise }));
    const { first, calls } = await lineOf(table, 2);
    const extending = first.extend();
    extending.catch(() => undefined);
    const asked = askedSince(table);
    await first.release();
    const second = await taken(calls[0]);
    expect(asked()).toEqual(["release", "attempt"]);
    reply.resolve(failed);
    await expect(extending).rejects.toThrow();
    await expect(second.extend()).rejects.toThrow("the store is away");
    expect(second.state).toBe("doubtful");
    await second.release();
    await taken(calls[1]);
    expect(asked()).toEqual(["release", "attempt", "extend", "release", "attempt"]);
  });

  test("releases the lock if the next call is cancelled at the same moment, and the one behind it attempts", async () => {
    const table = reserving();
    const controller = new AbortController();
    const { first, calls } = await lineOf(table, 1, { signal: controller.signal });
    const last = table.locks.acquire("a");
    await settle();
    const asked = askedSince(table);
    const released = first.release();
    controller.abort(new Error("no longer wanted"));
    await expect(calls[0]).rejects.toThrow("no longer wanted");
    expect(await released).toEqual({ released: true, handedOver: true });
    const lease = await taken(last);
    expect(asked()).toEqual(["release", "attempt"]);
    await lease.release();
    expect(table.entries.size).toBe(0);
  });
});

describe("a hand-over goes only to calls that waited when the granted request was sent", () => {
  test("a call that came later makes an attempt in the store", async () => {
    const table = reserving();
    const { first, calls } = await lineOf(table, 1);
    const late = table.locks.acquire("a");
    await settle();
    const asked = askedSince(table);
    expect(await first.release()).toEqual({ released: true, handedOver: true });
    const second = await taken(calls[0]);
    expect(asked()).toEqual([]);
    expect(await second.release()).toEqual({ released: true });
    await taken(late);
    expect(asked()).toEqual(["release", "attempt"]);
  });

  test("a call that begins after another process broke the lock waits for the new holder", async () => {
    const table = reserving();
    const { first, calls } = await lineOf(table, 1);
    table.entries.set("a", { owner: "of another process", untilMs: Infinity });
    const late = table.locks.acquire("a");
    await settle();
    expect(await first.release()).toEqual({ released: true, handedOver: true });
    const second = await taken(calls[0]);
    expect(await second.release()).toEqual({ released: false, reason: "taken" });
    await expect(taken(late)).rejects.toThrow("it still waits");
    await table.locks.close();
    await expect(late).rejects.toThrow("closed");
  });

  test("the granted request is the last attempt of a wait, not its first one", async () => {
    const table = reserving();
    table.entries.set("a", { owner: "of another process", untilMs: 1_000 });
    const front = table.locks.acquire("a", { retry: { minDelay: 600, maxDelay: 600 } });
    await table.clock.advance(700);
    const second = table.locks.acquire("a");
    await table.clock.advance(505);
    const first = await taken(front);
    expect(await first.release()).toEqual({ released: true, handedOver: true });
    await (await taken(second)).release();
  });

  test("no call gets the lock once the same manager has broken it", async () => {
    const table = reserving((made) => ({
      async break(resource: string) {
        made().entries.delete(resource);
        return { kind: "broken" };
      },
      inspect: async (resource: string) => {
        const owner = made().entries.get(resource)?.owner ?? "";
        const seen = { node: "fake", vote: "held", holder: { owner, fence: 20n } } as const;
        const state = "held";
        const rest = { label: undefined, fence: 20n, remainingMs: 1 };
        return { resource, state, ...rest, nodes: [seen] };
      },
    }));
    const { first, calls } = await lineOf(table, 1);
    expect(await table.locks.break("a")).toMatchObject({ broken: true });
    expect(await first.release()).toEqual({ released: false, reason: "taken" });
    const next = await taken(calls[0]);
    expect(next.fence).toBeGreaterThan(first.fence);
    await next.release();
  });
});

test("the `released` event reports whether the lock was handed over", async () => {
  const table = reserving();
  const { first, calls } = await lineOf(table, 1);
  const reported: unknown[] = [];
  table.locks.on("released", ({ released, handedOver }) => reported.push([released, handedOver]));
  await first.release();
  await (await taken(calls[0])).release();
  expect(reported).toEqual([
    [true, true],
    [true, false],
  ]);
});
