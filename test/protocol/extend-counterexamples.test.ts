import { expect, test } from "vitest";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { shareServers } from "../support/shared-servers.ts";
import { without } from "./held-line.ts";
import { play, type Stage } from "./stage.ts";

/**
 * Schedules in which an extension relies on a key that proves less than it seems to. Played as in
 * raise-counterexamples.test.ts: on real servers, with the rule and without it.
 */

const servers = shareServers(3);

const asItIs = { admission: "off" } as const;

/** Options with a touch that sets a missing key again. */
const extendCreates = {
  ...asItIs,
  mutations: {
    fenced: without(
      scripts.fenced,
      "if not value then return 'N ABSENT' end",
      "if not value then value = op.whole redis.call('SET', KEYS[k], value, 'PX', op.ttl) end",
    ),
  },
};

test("C12: a late extend that sets a missing key hides that another client held the lock in between", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    await a.runs("acquire", 2);
    await b.begins();
    await a.extends();
    await a.runs("touch", 2);
    await b.runs("acquire", 3);
    await stage.expires(1);
    await b.runs("acquire", 1);
    await b.runsIfSent("touch", 3);
    expect(b.fence).toBe(2n);
    if (b.grant !== undefined) void b.store.release(b.grant);
    await b.runs("release", 1);
    await a.runs("touch", 1);
    await a.runsIfSent("touch", 3);
    return a.extended?.kind;
  }
  expect(await play(servers, asItIs, schedule)).toBe("gone");
  // Rule: touch never creates a key. (It could do so safely while the counter has not moved,
  // but shards share counters, so that would hardly ever be possible.)
  expect(await play(servers, extendCreates, schedule)).toBe("extended");
});

test("C13: an extend that sets missing keys succeeds although another client held the lock in between", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    for (const actor of [a, b]) {
      await actor.begins();
      await actor.runs("acquire", 1);
      await actor.runs("acquire", 2);
      await stage.expires(1);
      await stage.expires(2);
    }
    await a.extends();
    for (const n of [1, 3, 2]) await a.runsIfSent("touch", n);
    return { fences: [a.fence, b.fence], extended: a.extended?.kind };
  }
  expect(await play(servers, asItIs, schedule)).toEqual({ fences: [1n, 2n], extended: "gone" });
  // Rule: as for C12.
  const broken = await play(servers, extendCreates, schedule);
  expect(broken).toEqual({ fences: [1n, 2n], extended: "extended" });
});

test("C14: an extend must not count a key that an own late acquire created again", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await b.begins();
    await a.runs("acquire", 1);
    await stage.expires(1);
    await b.runs("acquire", 1);
    await a.runs("acquire", 2);
    expect(a.fence).toBe(1n);
    await b.runs("acquire", 3);
    await b.executes("touch", 3);
    await stage.expires(3);
    expect(await a.executes("acquire", 3)).toMatch(/ 3$/);
    await b.receives("touch", 3);
    expect(b.fence).toBe(2n);
    await a.extends();
    await a.runs("touch", 2);
    await a.runs("touch", 3);
    await a.runsIfSent("touch", 1);
    return a.extended?.kind;
  }
  expect(await play(servers, asItIs, schedule)).toBe("gone");
  // Rule: touch, `tonumber(c) > t`.
  const fenced = without(scripts.fenced, "if tonumber(c) > tonumber(text) then", "if false then");
  const broken = await play(servers, { ...asItIs, mutations: { fenced } }, schedule);
  expect(broken).toBe("extended");
});
