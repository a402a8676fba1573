import { afterAll, beforeAll, expect, test } from "vitest";
import { FenceRejectedError } from "../../src/core/errors.ts";
import { steadyClock } from "../../src/core/steady-clock.ts";
import { leftMs } from "../../src/core/validity.ts";
import { guardedSet } from "../../src/fencing/redis.ts";
import { type RedisServer, startRedisServers } from "../support/redis-server.ts";
import { HeldLine } from "./held-line.ts";
import { play, resource, type Stage, ttlMs } from "./stage.ts";

/**
 * Schedules about one tenure and the next: who still holds, and who may write. Played
 * as in raise-counterexamples.test.ts: on real servers, with the rule and without it.
 */

let servers: RedisServer[];

beforeAll(async () => {
  servers = await startRedisServers(3);
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

const asItIs = { admission: "off" } as const;

/** What a guarded write of this fence does to a value: written, or refused as stale. */
async function write(stage: Stage, fence: bigint | undefined): Promise<"written" | "refused"> {
  const line = new HeldLine((command) => stage.server(1).command(...command), {}, []);
  try {
    await guardedSet(line, fence ?? 0n, "row", "x", { resource });
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
    await a.hears("acquire", 1);
    await a.hears("acquire", 2);
    const writes = [await write(stage, b.fence), await write(stage, a.fence)];
    return { first, second: a.fence, writes };
  }
  // No rule forbids this order: without knowing when keys end, no protocol could. The rule that
  // makes it harmless is the guard's, `fence >= last`; a storage that does not ask would take A's
  // late write, whose fence is the smaller.
  const played = await play(servers, asItIs, schedule);
  expect(played).toEqual({ first: 2n, second: 1n, writes: ["written", "refused"] });
});

test("C5: a key that is gone too early lets a second holder in, with the greater fence", async () => {
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
  // Exclusion is a matter of time and nothing else can give it; the fence still tells who is later.
  const played = await play(servers, asItIs, schedule);
  expect(played).toEqual({ a: 1n, b: 2n, writes: ["written", "refused"] });
});

test("C5b: an allowance smaller than both clocks' errors together lets two hold at once", async () => {
  // A node may let a key live 15 s less than its 60 s, and a client's clock may lose 15 s in them.
  const allowing = (fixed: number) => ({ ...asItIs, drift: { factor: 0, fixed } });
  async function schedule(stage: Stage) {
    const a = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    // 45 s later; A's slow clock says 30 s.
    a.clock.nowMs += 30_000;
    await a.runs("acquire", 2);
    const b = stage.actor();
    await b.begins();
    await b.runs("acquire", 3);
    // Node 1's fast clock says 60 s.
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
    // The release of the attempt before arrives only now.
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
  // Rule: an owner for every attempt (core/owners.ts, `next`). Here: the same for two of them.
  expect(await play(servers, asItIs, (stage) => schedule(stage, "reused"))).toBe(2);
});

test("C16: every tenure has a fence of its own, and one tenure may write more than once", async () => {
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
    // A write of the second tenure, a late one of the first, and the second's next.
    const own = [await write(stage, second), await write(stage, first), await write(stage, second)];
    // The same with one number for both tenures, as a hand-over within a process might do it.
    const shared = [await write(stage, 9n), await write(stage, 9n)];
    return { own, shared };
  }
  const played = await play(servers, asItIs, schedule);
  expect(played.own).toEqual(["written", "refused", "written"]);
  // Rule: a new fence per tenure. There is no hand-over between a process's own tasks yet; when
  // there is, it must not reuse a number: the guard cannot tell the late write from a new one.
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
  // Rule: one owner per key (acquire.lua, `holder ~= owner`). There is no semaphore yet; one that
  // gave each node two permits and asked for a majority would let in A {1, 2}, B {1, 3}, C {2, 3}.
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

test("C21: validity counts from the first send, because a repeat does not refresh the key", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    await a.begins();
    for (const n of [1, 2]) {
      await a.executes("acquire", n);
      // Half of its life passes before the client, whose connection broke, asks again.
      await stage.server(n).command("PEXPIRE", resource, String(ttlMs / 2));
      await a.hearsNothing("acquire", n);
    }
    a.clock.nowMs += ttlMs / 2;
    const resent = steadyClock(a.clock).now();
    for (const n of [1, 2]) expect(await a.runs("acquire", n)).toMatch(/^G .* 1$/);
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
  // Rule: `started` is taken once per attempt (core/acquire.ts). Taken again at the repeat, A would
  // trust keys that are long gone.
  expect(fromResendMs).toBeGreaterThan(keyMs);
});
