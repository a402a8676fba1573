import { describe, expect, onTestFinished, test } from "vitest";
import { startRedisServers } from "../../tools/redis/redis-server.mjs";
import { waitEndsAfter } from "../../src/core/acquire/countdown.ts";
import { QuorumError } from "../../src/index.ts";
import { collect, dial, openLocks, rejection } from "../support/redis-harness.ts";
import { watchLeaks } from "../support/leaks.ts";

watchLeaks();

const admission = "strict";

async function freshServers(): Promise<readonly { readonly port: number }[]> {
  const servers = await startRedisServers(3);
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });
  return servers;
}

describe("on servers that have just been started", () => {
  test("a call without a wait of its own lasts until they may vote, and one warning says so", async () => {
    const servers = await freshServers();
    const clients = servers.map(({ port }) => dial(port));
    // Longer than the default wait of 10 s.
    const locks = openLocks(clients, { admission, maxTtl: "12s" }, { ttl: "2s" });
    const warnings = collect(locks, "warning");
    const [one, other] = await Promise.all([locks.acquire("a"), locks.acquire("b")]);
    expect([one.state, other.state]).toEqual(["held", "held"]);
    expect(warnings).toMatchObject([{ level: "warning", code: "admission-countdown" }]);
    expect(warnings[0]?.what).toMatch(/^too few nodes may vote: they are new, .*in about \d+ s$/);
    expect(warnings[0]?.remedy).toContain('maxTtl: "2s"');
    await Promise.all([one.release(), other.release()]);
  });

  test("a wait that the caller gave is kept, and the error says when they may vote", async () => {
    const servers = await freshServers();
    const clients = servers.map(({ port }) => dial(port));
    const locks = openLocks(clients, { admission, maxTtl: "1h" }, { ttl: "2s" });
    const warnings = collect(locks, "warning");
    for (const wait of [0, 300]) {
      const error = await rejection(locks.acquire("a", { wait }));
      expect(error).toBeInstanceOf(QuorumError);
      expect(String(error)).toMatch(/it may vote in about \d+ s/);
    }
    expect(await rejection(locks.tryAcquire("a"))).toBeInstanceOf(QuorumError);
    expect(warnings.map(({ code }) => code)).toEqual(["admission-countdown"]);
  });
});

describe("the end of a wait", () => {
  const clock = { monotonicMs: () => 1_000 };
  const soFar = { beganMs: 0, waitEndsMs: 10_000, clock };
  const byDefault = { waitMs: 10_000, isDefaultWait: true };
  const counting = (votesInMs: number | undefined) =>
    ({
      kind: "failed",
      error: new QuorumError("acquire", ["a"], [], { quorum: 2 }),
      retryable: true,
      votesInMs,
      cleanup: undefined,
    }) as const;

  test("moves behind the countdown of the nodes, once, and only without a wait of the caller", () => {
    expect(waitEndsAfter(counting(24_000), byDefault, soFar)).toBe(27_000);
    expect(waitEndsAfter(counting(3_000), byDefault, soFar)).toBe(10_000);
    expect(waitEndsAfter(counting(0), byDefault, soFar)).toBe(10_000);
    expect(waitEndsAfter(counting(undefined), byDefault, soFar)).toBe(10_000);
    const later = { ...soFar, waitEndsMs: 27_000 };
    expect(waitEndsAfter(counting(90_000), byDefault, later)).toBe(27_000);
    const own = { waitMs: 10_000, isDefaultWait: false };
    expect(waitEndsAfter(counting(24_000), own, soFar)).toBe(10_000);
    const once = { waitMs: 0, isDefaultWait: true };
    expect(waitEndsAfter(counting(24_000), once, { ...soFar, waitEndsMs: 0 })).toBe(0);
  });
});
