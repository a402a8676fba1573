import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type Lease, type Locks, StoreError } from "../../src/index.ts";
import { redlockGroups } from "../../src/stores/redis/index.ts";
import { collect, connect, openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";
import { clientsOf, maxTtl, nameOf, namesOf, openGroups } from "./group-locks.ts";

const redis = shareRedis(6);
// Groups of one server would be enough for most tests; with two, a quorum needs every vote.
const a = [0, 1];
const b = [2, 3];
const c = [4, 5];
const short = { maxTtl };
const brief = { ttl: maxTtl };
const three = ["1", "2", "3"];

/** Names whose home is group 1 or 2 of two groups, and group 3 of three. */
const moving = namesOf("3", three, 6);

async function refusal(call: Promise<unknown>): Promise<string> {
  const error = await rejection(call);
  expect(error).toBeInstanceOf(StoreError);
  return String(error);
}

function format(server: RedisServer): Promise<unknown> {
  return server.command("HGET", "holdfast:node", "fmt");
}

async function formats(): Promise<unknown[]> {
  return await Promise.all(redis.servers.map(format));
}

describe("another layout with the same number", () => {
  test("is refused, even for names on servers that no layout uses yet", async () => {
    const old = await openGroups(redis, [a, b]);
    await using lease = await old.acquire(moving[0] ?? "");
    expect(lease.state).toBe("held");
    const wider = await openGroups(redis, [a, b, c]);
    const message = await refusal(wider.acquire(moving[0] ?? "", { wait: "30s" }));
    expect(message).toContain('belongs to group "1" of layout 1');
    expect(message).toContain("with a greater `layout`");
    // Not even the unused servers were changed.
    expect((await formats()).slice(4)).toEqual([null, null]);
    expect(await lease.prove()).toBe(true);
  });

  test("is refused if only maxTtl differs, because every wait depends on it", async () => {
    await (await (await openGroups(redis, [a, b])).acquire("x")).release();
    const longer = await openGroups(redis, [a, b], { maxTtl: "60s" });
    expect(await refusal(longer.acquire("x"))).toContain("maxTtl");
  });

  test("is opened for at most one of two that come at once, and a greater number replaces both", async () => {
    const first = await openGroups(redis, [a, b], short, brief);
    const second = await openGroups(redis, [a, c], short, brief);
    const outcomes = await Promise.allSettled(
      [first, second].map(async (locks) => await locks.acquire("x", { wait: 0 })),
    );
    const granted = outcomes.filter(({ status }) => status === "fulfilled");
    expect(granted.length).toBeLessThanOrEqual(1);
    const third = await openGroups(redis, [a, b, c], { ...short, layout: 2 }, brief);
    await using lease = await third.acquire("x", { wait: "30s" });
    expect(lease.state).toBe("held");
    await Promise.allSettled([first.close(), second.close()]);
  });
});

describe("a greater layout", () => {
  test("grants only when every lease of the old layout is over, and with greater fences", async () => {
    const old = await openGroups(redis, [a, b], short, brief);
    const leases = await Promise.all(moving.map((name) => old.acquire(name)));
    const fences = leases.map(({ fence }) => fence);
    // Counters of the old groups that are ahead of every clock.
    const ahead = String(4_000_000_000_000_000n);
    for (const index of [...a, ...b]) {
      await redis.server(index).command("HSET", "holdfast:node", "7", ahead);
    }
    const wide = await openGroups(redis, [a, b, c], { ...short, layout: 2 }, brief);
    const warnings = collect(wide, "warning");
    const message = await refusal(wide.acquire(moving[0] ?? "", { wait: 0 }));
    expect(message).toMatch(
      /layout 2 is not open yet: leases of the one before may live for about/,
    );
    expect(warnings.filter(({ what }) => what.startsWith("layout 2 replaces"))).toHaveLength(1);
    // From now on the old layout is closed, for new leases and for extensions.
    expect(await refusal(old.acquire("anything", { wait: "30s" }))).toContain("of layout 2");
    for (const lease of leases) await rejection(lease.extend());
    const seen = await Promise.all(
      moving.map(async (name, index) => {
        const lease = await wide.acquire(name, { wait: "30s", renew: true });
        return { lease, before: leases[index]?.state };
      }),
    );
    for (const [index, { lease, before }] of seen.entries()) {
      expect(before).toBe("lost");
      expect(lease.fence).toBeGreaterThan(fences[index] ?? 0n);
      expect(lease.fence).toBeGreaterThan(BigInt(ahead));
      await lease.release();
    }
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await refusal(old.acquire("anything", { wait: "30s" }))).toContain("of layout 2");
    await redis.untilFree();
  });

  test("never holds a resource at the same time as the layout before, with both in use", async () => {
    const names = [...moving, ...namesOf("1", three, 2), ...namesOf("2", three, 2)];
    const holds: { name: string; by: string; fromMs: number; untilMs: number }[] = [];
    const life = { isOver: false };
    const work = async (locks: Locks, by: string, name: string): Promise<void> => {
      while (!life.isOver) {
        const lease = await locks.acquire(name, { wait: 0 }).catch(() => undefined);
        if (lease === undefined) {
          await sleep(20);
          continue;
        }
        const fromMs = performance.now();
        // Extended for as long as possible, as by a worker that never checks its signal.
        while (!life.isOver && lease.remainingMs() > 50) {
          await lease.extend().catch(() => undefined);
          await sleep(25);
        }
        holds.push({ name, by, fromMs, untilMs: fromMs + heldMs(lease, fromMs) });
        await lease.release();
      }
    };
    const heldMs = (lease: Lease, fromMs: number): number =>
      performance.now() - fromMs + lease.remainingMs();
    const old = await openGroups(redis, [a, b], short, brief);
    const wide = await openGroups(redis, [a, b, c], { ...short, layout: 2 }, brief);
    await (await old.acquire("first")).release();
    const olds = names.map((name) => work(old, "old", name));
    await sleep(200);
    const wides = names.map((name) => work(wide, "wide", name));
    await expect.poll(() => holds.some(({ by }) => by === "old"), { timeout: 30_000 }).toBe(true);
    await (await wide.acquire("last", { wait: "30s" })).release();
    await sleep(200);
    life.isOver = true;
    await Promise.all([...olds, ...wides]);
    expect(new Set(holds.map(({ by }) => by))).toEqual(new Set(["old", "wide"]));
    for (const one of holds.filter(({ by }) => by === "old")) {
      for (const other of holds.filter(({ by, name }) => by === "wide" && name === one.name)) {
        expect(Math.max(one.fromMs, other.fromMs)).toBeGreaterThan(
          Math.min(one.untilMs, other.untilMs),
        );
      }
    }
    await redis.untilFree();
  });

  test("needs every node once, and closes the old layout only when all have answered", async () => {
    const old = await openGroups(redis, [a, b], short, brief);
    await (await old.acquire("x")).release();
    const hasty = { ...short, layout: 2, nodeTimeout: "300ms" } as const;
    const wide = await openGroups(redis, [a, b, c], hasty, brief);
    redis.freeze(5);
    const message = await refusal(wide.acquire("x", { wait: 0 }));
    expect(message).toContain("group-3/node-2 did not answer");
    await (await old.acquire("x")).release();
    redis.thaw(5);
    await (await wide.acquire("x", { wait: "30s" })).release();
    await redis.untilFree();
  });

  test("is open at once if no server had a layout before", async () => {
    const locks = await openGroups(redis, [a, b], { layout: 7 });
    await (await locks.acquire("x", { wait: 0 })).release();
  });

  test("works with admission, on servers of old and new groups", async () => {
    const strict = { ...short, admission: "strict" } as const;
    const old = await openGroups(redis, [a, b], strict, brief);
    const lease = await old.acquire(moving[0] ?? "", { wait: "30s" });
    const wide = await openGroups(redis, [a, b, c], { ...strict, layout: 2 }, brief);
    const next = await wide.acquire(moving[0] ?? "", { wait: "30s" });
    expect(lease.state).toBe("lost");
    expect(next.fence).toBeGreaterThan(lease.fence);
    await lease.release();
    await next.release();
    await expect
      .poll(async () => [...new Set((await wide.nodes()).map(({ admission }) => admission))])
      .toEqual(["admitted"]);
    await redis.untilFree();
  });
});

describe("a group that is removed", () => {
  const inThird = nameOf("3", three);

  test("must be closed first: the layout is refused until the group is given as retired", async () => {
    const old = await openGroups(redis, [a, b, c], short, brief);
    const lease = await old.acquire(inThird);
    const narrow = await openGroups(redis, [a, b], { ...short, layout: 2 }, brief);
    const message = await refusal(narrow.acquire(inThird, { wait: "30s" }));
    expect(message).toContain('has groups that are not in it: "3"');
    // The refused layout closed nothing.
    await lease.extend();

    const retired = { 3: await clientsOf(redis, c) };
    const right = await openGroups(redis, [a, b], { ...short, layout: 2, retired }, brief);
    const next = await right.acquire(inThird, { wait: "30s" });
    expect(lease.state).toBe("lost");
    expect(next.fence).toBeGreaterThan(lease.fence);
    expect(await refusal(old.acquire(inThird, { wait: "30s" }))).toContain("of layout 2");
    await next.release();
    await lease.release();
    // Once the layout is open, clients need not list the group any more.
    const later = await openGroups(redis, [a, b], { ...short, layout: 2 }, brief);
    await (await later.acquire(inThird, { wait: 0 })).release();
    await redis.untilFree();
  });

  test("may be gone for good, if it is retired without clients", async () => {
    await (await (await openGroups(redis, [a, b, c], short, brief)).acquire(inThird)).release();
    await redis.untilFree();
    const gone = { ...short, layout: 2, retired: { 3: [] } };
    const narrow = await openGroups(redis, [a, b], gone, brief);
    await (await narrow.acquire(inThird, { wait: "30s" })).release();
  });

  test("may be in the middle if groups have names", async () => {
    const named = { ...short, ids: ["x", "y", "z"] };
    const old = await openGroups(redis, [a, b, c], named, brief);
    const stays = nameOf("z", named.ids);
    await (await old.acquire(stays)).release();
    await redis.untilFree();
    const retired = { y: await clientsOf(redis, b) };
    const next = { ...short, ids: ["x", "z"], layout: 2, retired };
    const locks = await openGroups(redis, [a, c], next, brief);
    await using lease = await locks.acquire(stays, { wait: "30s" });
    // The last group still has its keys.
    expect(await redis.server(4).command("EXISTS", stays)).toBe(1);
    expect(lease.state).toBe("held");
  });
});

describe("one quorum without groups", () => {
  const store = { admission: "off", maxTtl, nodeTimeout: "5s" } as const;

  test("counts as layout 1: only a greater number makes it a group, and it is refused afterwards", async () => {
    const plain = openLocks(await clientsOf(redis, a), store, brief);
    const lease = await plain.acquire(moving[0] ?? "");
    const first = await openGroups(redis, [a, b, c], short, brief);
    expect(await refusal(first.acquire("x"))).toContain("give `layout: 2` or more");
    await lease.extend();
    const groups = await openGroups(redis, [a, b, c], { ...short, layout: 2 }, brief);
    const next = await groups.acquire(moving[0] ?? "", { wait: "30s" });
    expect(lease.state).toBe("lost");
    expect(next.fence).toBeGreaterThan(lease.fence);
    const error = await rejection(plain.acquire("y", { wait: "30s" }));
    expect(String(error)).toContain('belongs to group "1" of layout 2');
    await next.release();
    await lease.release();
    await redis.untilFree();
  });

  test("is refused on servers of a group, because it would use the wrong servers", async () => {
    await (await (await openGroups(redis, [a, b])).acquire("x")).release();
    const plain = openLocks(await clientsOf(redis, a), store, brief);
    const error = await rejection(plain.acquire("x", { wait: "30s" }));
    expect(String(error)).toContain("of layout 1");
  });
});

describe("a node that missed the layout", () => {
  const groups = [
    [0, 1, 2],
    [3, 4, 5],
  ];

  test.each(["lost its data", "came back in an older layout"])(
    "gets it at the next look if it %s",
    async (how) => {
      const locks = await openGroups(redis, groups, { layout: 2 });
      await (await locks.acquire("x")).release();
      const right = await format(redis.server(1));
      if (how === "lost its data") await redis.server(1).command("FLUSHALL");
      else {
        const older = String(right).replace("groups:2:", "groups:1:");
        await redis.server(1).command("HSET", "holdfast:node", "fmt", older);
      }
      // One missing node does not matter.
      await (await locks.acquire("x", { wait: 0 })).release();
      await locks.nodes();
      expect(await format(redis.server(1))).toBe(right);
    },
  );

  test("gets it without another wait if its opening was interrupted", async () => {
    const locks = await openGroups(redis, groups, { layout: 2 });
    await (await locks.acquire("x")).release();
    const right = await formats();
    for (const server of redis.servers.slice(1)) {
      const claim = String(await format(server)).replace("/groups:", "/claim:");
      const later = String(Date.now() + 3_600_000);
      await server.command("HSET", "holdfast:node", "fmt", claim, "lat", later);
    }
    const next = await openGroups(redis, groups, { layout: 2 });
    await (await next.acquire("x", { wait: 0 })).release();
    await next.nodes();
    expect(await formats()).toEqual(right);
    await redis.untilFree();
  });
});

test("a layout never goes back to a smaller number, for any client", async () => {
  const newer = await openGroups(redis, [a, b], { layout: 3 });
  await (await newer.acquire("x")).release();
  for (const layout of [1, 2]) {
    const older = await openGroups(redis, [a, b], { layout });
    expect(await refusal(older.acquire("x", { wait: "30s" }))).toContain("of layout 3");
  }
  const { port } = redis.server(0);
  const alone = createLocks(redlockGroups([[await connect(port)]], { layout: 2 }), {});
  onTestFinished(() => alone.close());
  expect(await refusal(alone.acquire("x"))).toContain("of layout 3");
});
