import { expect, test } from "vitest";
import { FenceRejectedError } from "../../src/core/errors.ts";
import { leftMs, steadyClock } from "../../src/core/time/instant.ts";
import { fencedSet } from "../../src/fencing/redis.ts";
import { shareServers } from "../support/shared-servers.ts";
import { HeldLine } from "./held-line.ts";
import { play, resource, type Stage, ttlMs } from "./stage.ts";

/**
 * Schedules about one holder and the next: which of them holds the lock, and which may write.
 * Played as in raise-counterexamples.test.ts: on real servers, with the rule and without it.
 */

const servers = shareServers(3);

const asItIs = { admission: "off" } as const;

/** Makes a guarded write with this fence. Returns whether it was written or refused as stale. */
async function write(stage: Stage, fence: bigint | undefined): Promise<"written" | "refused"> {
  const line = new HeldLine((command) => stage.server(1).command(...command), {}, []);
  try {
    await fencedSet(line, fence ?? 0n, "row", "x", { resource });
    return "written";
  } catch (error) {
    if (error instanceof FenceRejectedError) return "refused";
    throw error;
  }
}

test("C3: an attempt may complete after another with a smaller fence, and the guard refuses it", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await b.begins();
    for (const n of [1, 2]) {
      await a.executes("acquire", n);
      await stage.expires(n);
      await b.runs("acquire", n);
    }
    const first = b.fence;
    await a.receives("acquire", 1);
    await a.receives("acquire", 2);
    const writes = [await write(stage, b.fence), await write(stage, a.fence)];
    return { first, second: a.fence, writes };
  }
  // No rule forbids this order: without knowing when keys expire, no protocol could. It is harmless
  // by the rule of the guard, `fence >= last`. Storage without it would accept A's late write,
  // although its fence is smaller.
  const played = await play(servers, asItIs, schedule);
  expect(played).toEqual({ first: 2n, second: 1n, writes: ["written", "refused"] });
});

test("C5: a key that vanishes too early lets a second holder in, with a greater fence", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await b.begins();
    await a.runs("acquire", 1);
    await a.runs("acquire", 2);
    await b.runs("acquire", 3);
    await stage.expires(1);
    await b.runs("acquire", 1);
    await b.runsIfSent("touch", 3);
    return {
      a: a.fence,
      b: b.fence,
      writes: [await write(stage, b.fence), await write(stage, 1n)],
    };
  }
  // Exclusion depends on time alone. The fence still shows which holder is the later one.
  const played = await play(servers, asItIs, schedule);
  expect(played).toEqual({ a: 1n, b: 2n, writes: ["written", "refused"] });
});

test("C5b: a drift smaller than both clocks' errors together lets two clients hold at once", async () => {
  // A node may drop a key 15 s before its 60 s, and a client's clock may lose 15 s in that time.
  const allowing = (fixed: number) => ({ ...asItIs, drift: { factor: 0, fixed } });
  async function schedule(stage: Stage) {
    const a = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    // 45 s have passed; A's slow clock shows 30 s.
    a.clock.nowMs += 30_000;
    await a.runs("acquire", 2);
    const b = stage.actor();
    await b.begins();
    await b.runs("acquire", 3);
    // Node 1's fast clock shows 60 s.
    await stage.expires(1);
    await b.runs("acquire", 1);
    await b.runsIfSent("touch", 3);
    return [a.grant, b.grant].filter((grant) => grant !== undefined).length;
  }
  expect(await play(servers, allowing(30_000), schedule)).toBe(1);
  // Rule: validity is the TTL less the drift of node and client (attempt.ts, `#validityMs`).
  expect(await play(servers, allowing(15_000), schedule)).toBe(2);
});

test("C15: a late release of one attempt must not delete the lock of the next", async () => {
  async function schedule(stage: Stage, owner: string | undefined) {
    const a = stage.actor();
    await a.begins(owner);
    await a.runs("acquire", 1);
    await a.runs("acquire", 2);
    if (a.grant !== undefined) void a.store.release(a.grant);
    await a.runs("release", 2);
    await stage.expires(1);
    await a.begins(owner);
    await a.runs("acquire", 1);
    // The release of the earlier attempt arrives only now.
    await a.executes("release", 1);
    await a.runs("acquire", 2);
    await a.runsIfSent("touch", 1);
    const c = stage.actor();
    await c.begins();
    await c.runs("acquire", 1);
    await c.runs("acquire", 3);
    await c.runsIfSent("touch", 3);
    return [a.grant, c.grant].filter((grant) => grant !== undefined).length;
  }
  expect(await play(servers, asItIs, (stage) => schedule(stage, undefined))).toBe(1);
  // Rule: a new owner for every attempt (core/owners.ts, `next`). Here two attempts have the same.
  expect(await play(servers, asItIs, (stage) => schedule(stage, "reused"))).toBe(2);
});

test("C16: every lease has its own fence, and one lease may write more than once", async () => {
  async function schedule(stage: Stage) {
    const fences: (bigint | undefined)[] = [];
    for (let tenure = 0; tenure < 2; tenure += 1) {
      const actor = stage.actor();
      await actor.begins();
      await actor.runs("acquire", 1);
      await actor.runs("acquire", 2);
      fences.push(actor.fence);
      await stage.expires(1);
      await stage.expires(2);
    }
    const [first, second] = fences;
    // A write of the second lease, a late one of the first, and another one of the second.
    const own = [await write(stage, second), await write(stage, first), await write(stage, second)];
    // The same with one fence for both leases.
    const shared = [await write(stage, 9n), await write(stage, 9n)];
    return { own, shared };
  }
  const played = await play(servers, asItIs, schedule);
  expect(played.own).toEqual(["written", "refused", "written"]);
  // Rule: a new fence for every lease, also after a hand-over within a process. With a repeated
  // fence, the guard could not distinguish the late write from a new one.
  expect(played.shared).toEqual(["written", "written"]);
  // C18, a read/write lock whose storage keeps one number for readers and writers, cannot arise:
  // there is no read/write lock, and every guard keeps the one number of exclusive holders.
});

test("C17: counting votes for several permits per node would let in more than there are permits", async () => {
  async function schedule(stage: Stage) {
    const actors = [stage.actor(), stage.actor(), stage.actor()];
    for (const actor of actors) await actor.begins();
    const asked = [1, 2, 1, 3, 2, 3].map((n, index) => ({ actor: actors[index >> 1], n }));
    for (const { actor, n } of asked) await actor?.runs("acquire", n);
    for (const actor of actors) for (const n of [1, 2, 3]) await actor.runsIfSent("touch", n);
    return actors.filter(({ grant }) => grant !== undefined).length;
  }
  expect(await play(servers, asItIs, schedule)).toBe(1);
  // Rule: one owner per key (acquire, `holder ~= owner`). There is no semaphore yet; one with
  // two permits per node and a majority would admit A {1, 2}, B {1, 3}, C {2, 3}.
  const permits = [2, 2, 2];
  const admitted = [
    [0, 1],
    [0, 2],
    [1, 2],
  ].filter((asked) => {
    if (asked.some((node) => permits[node] === 0)) return false;
    for (const node of asked) permits[node] = (permits[node] ?? 0) - 1;
    return true;
  });
  expect(admitted).toHaveLength(3);
});

test("C21: validity counts from the first send, because a repeated acquire does not refresh the key", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    await a.begins();
    for (const n of [1, 2]) {
      await a.executes("acquire", n);
      // Half of the key's life passes before the client, whose connection broke, sends again.
      await stage.server(n).command("PEXPIRE", resource, String(ttlMs / 2));
      await a.getsNoReply("acquire", n);
    }
    a.clock.nowMs += ttlMs / 2;
    const resent = steadyClock(a.clock).now();
    for (const n of [1, 2]) expect(await a.runs("acquire", n)).toMatch(/\nG$/);
    const lives = [1, 2].map((n) => stage.server(n).command("PTTL", resource));
    const validityMs = a.grant?.validityMs ?? 0;
    return {
      keyMs: Math.max(...(await Promise.all(lives)).map(Number)),
      trustedMs: leftMs(steadyClock(a.clock), a.started, validityMs),
      fromResendMs: leftMs(steadyClock(a.clock), resent, validityMs),
    };
  }
  const { keyMs, trustedMs, fromResendMs } = await play(servers, asItIs, schedule);
  expect(keyMs).toBeLessThanOrEqual(ttlMs / 2);
  expect(trustedMs).toBeGreaterThan(0);
  expect(trustedMs).toBeLessThanOrEqual(ttlMs / 2);
  // Rule: `started` is taken once per attempt (core/acquire/acquisition.ts). If it were taken again for the
  // repeated request, A would trust keys that have expired.
  expect(fromResendMs).toBeGreaterThan(keyMs);
});
