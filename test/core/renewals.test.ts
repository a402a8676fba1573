import { describe, expect, test } from "vitest";
import type { ExtendOutcome, Grant, OnExtended } from "../../src/core/store.ts";
import { steadyClock } from "../../src/core/time/instant.ts";
import { extended, failed, scene } from "./fake-store.ts";

/** If a store can renew many leases at once, those that are due together are one request. */

const ttl = 3_000;

interface Asked {
  readonly names: readonly string[];
  readonly ttlMs: number;
  answer(name: string, outcome: ExtendOutcome): void;
}

function together() {
  const asked: Asked[] = [];
  const made = scene(
    {
      extendMany(grants: readonly Grant[], ttlMs: number, onExtended: OnExtended) {
        const names = grants.map(({ resources }) => resources.join());
        const answer = (name: string, outcome: ExtendOutcome): void => {
          onExtended(names.indexOf(name), outcome, steadyClock(made.clock).now());
        };
        asked.push({ names, ttlMs, answer });
      },
    },
    { ttl, renew: true },
  );
  return { ...made, asked };
}

describe("renewals that are due together", () => {
  test("are one request, and each lease gets its own result", async () => {
    const { locks, clock, asked, times } = together();
    const reported: string[] = [];
    locks.on("renewed", ({ resources }) => reported.push(`renewed ${resources.join()}`));
    locks.on("doubtful", ({ resources }) => reported.push(`doubtful ${resources.join()}`));
    locks.on("lost", ({ resources, reason }) =>
      reported.push(`lost ${resources.join()} ${reason}`),
    );
    await Promise.all(["a", "b", "c"].map((name) => locks.acquire(name)));
    clock.pause(1_100);
    await clock.advance(0);
    expect(asked.map(({ names }) => names.toSorted())).toEqual([["a", "b", "c"]]);
    asked[0]?.answer("b", { kind: "gone" });
    asked[0]?.answer("c", failed);
    await clock.advance(200);
    // A result is applied at once, without waiting for the others.
    asked[0]?.answer("a", extended(ttl));
    expect(reported).toEqual(["lost b taken", "doubtful c", "renewed a"]);
    expect(times("extend")).toEqual([]);
    await locks.close();
  });

  test("with different TTLs are one request for each TTL", async () => {
    const { locks, clock, asked } = together();
    await locks.acquire("a");
    await locks.acquire("b", { ttl: 6_000 });
    await locks.acquire("c");
    clock.pause(2_100);
    await clock.advance(0);
    expect(asked.map(({ names, ttlMs }) => [ttlMs, names.toSorted()])).toEqual([
      [3_000, ["a", "c"]],
      [6_000, ["b"]],
    ]);
    await locks.close();
  });

  test("count the new validity from when they were sent", async () => {
    const { locks, clock, asked } = together();
    const leases = await Promise.all(["a", "b"].map((name) => locks.acquire(name)));
    clock.pause(1_100);
    await clock.advance(0);
    await clock.advance(400);
    for (const name of ["a", "b"]) asked[0]?.answer(name, extended(ttl));
    expect(leases.map((lease) => lease.remainingMs())).toEqual([2_600, 2_600]);
    await locks.close();
  });

  test("have no effect if the result comes after the end of the lease", async () => {
    const { locks, clock, asked } = together();
    const leases = await Promise.all(["a", "b"].map((name) => locks.acquire(name)));
    clock.pause(1_100);
    await clock.advance(0);
    await clock.advance(2_000);
    for (const name of ["a", "b"]) asked[0]?.answer(name, extended(ttl));
    expect(leases.map(({ state }) => state)).toEqual(["lost", "lost"]);
    await locks.close();
  });

  test("delay an extension by the user, which is sent alone", async () => {
    const { locks, clock, asked, times } = together();
    const [lease] = await Promise.all(["a", "b"].map((name) => locks.acquire(name)));
    clock.pause(1_100);
    await clock.advance(0);
    const byHand = lease?.extend();
    await clock.advance(100);
    expect(times("extend")).toEqual([]);
    for (const name of ["a", "b"]) asked[0]?.answer(name, extended(ttl));
    await byHand;
    expect(times("extend")).toEqual([1_200]);
    await locks.close();
  });
});
