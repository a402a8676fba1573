import { expect, test } from "vitest";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { shareServers } from "../support/shared-servers.ts";
import { without } from "./held-line.ts";
import { play, type Stage } from "./stage.ts";

/**
 * Schedules in which a weaker rule for the second round gives two acquisitions the same fence, or
 * gives a later one a smaller fence. Each is played twice on the same real servers with the real
 * client: once with the real scripts, once with one rule removed, which must show the violation.
 *
 * Three nodes, a quorum of two. "Expires" means that a key is gone for any reason. Admission is
 * off, because no node loses its counters here.
 */

const servers = shareServers(3);

const asItIs = { admission: "off" } as const;

/** touch without its checks and its writes: the greatest fence of a quorum is used as it is. */
const raiseIsEmpty = {
  ...asItIs,
  mutations: {
    fenced: without(
      scripts.fenced,
      "local is_behind, owner, text = false, split(op.whole, view)",
      "do return 'K' end\nlocal is_behind, owner, text = false, split(op.whole, view)",
    ),
  },
};

/** touch that raises the fence of any holder. */
const raiseIgnoresOwner = {
  ...asItIs,
  mutations: {
    fenced: without(scripts.fenced, "if holder ~= owner or not c then", "if not c then"),
  },
};

/** touch that checks the owner only, and not the fence of the key (`c <= t`). */
const raiseIgnoresFence = {
  ...asItIs,
  mutations: {
    fenced: without(scripts.fenced, "if tonumber(c) > tonumber(text) then", "if false then"),
  },
};

test("C1: the greatest fence of a quorum must be recorded by a quorum, or a later one is smaller", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor({ proposes: 3 });
    await a.begins();
    await b.begins();
    await a.runs("acquire", 1);
    await stage.expires(1);
    await b.runs("acquire", 2);
    await stage.expires(2);
    expect(await a.runs("acquire", 2)).toMatch(/\nG 4$/);
    // A has the grants {1, 4} and sends a raise to the nodes below 4. Node 3 has no key of A.
    await a.runs("touch", 1);
    const completedFirst = a.fence;
    const c = stage.actor();
    await c.begins();
    await c.runs("acquire", 1);
    await c.runs("acquire", 3);
    await c.runsIfSent("touch", 3);
    await c.runsIfSent("touch", 1);
    await a.runsIfSent("touch", 3);
    return { completedFirst, a: a.fence, c: c.fence };
  }
  const safe = await play(servers, asItIs, schedule);
  expect(safe).toEqual({ completedFirst: undefined, a: undefined, c: 2n });
  // Rule: an acquisition is complete when a quorum has recorded its fence (touch writes it).
  const broken = await play(servers, raiseIsEmpty, schedule);
  expect(broken).toEqual({ completedFirst: 4n, a: 4n, c: 2n });
});

test("C2a: the greatest fence of a quorum, used without a second round, is given twice", async () => {
  async function schedule(stage: Stage) {
    const { a, b } = await crossedGrants(stage);
    await a.runsIfSent("touch", 1);
    await b.runsIfSent("touch", 2);
    return [a.fence, b.fence];
  }
  expect(await play(servers, asItIs, schedule)).toEqual([undefined, undefined]);
  // Rule: as for C1.
  expect(await play(servers, raiseIsEmpty, schedule)).toEqual([2n, 2n]);
});

test("C2: a raise that does not check the owner gives the same fence twice", async () => {
  async function schedule(stage: Stage) {
    const { a, b } = await crossedGrants(stage);
    const raises = [await a.runs("touch", 1), await b.runs("touch", 2)];
    return { raises: raises.map((reply) => reply.split(" ").at(-1)), fences: [a.fence, b.fence] };
  }
  const safe = await play(servers, asItIs, schedule);
  expect(safe).toEqual({ raises: ["OTHER", "OTHER"], fences: [undefined, undefined] });
  // Rule: touch, `holder ~= owner`.
  const broken = await play(servers, raiseIgnoresOwner, schedule);
  expect(broken.fences).toEqual([2n, 2n]);
});

/** Node 1 granted A 1, then B 2; node 2 granted B 1, then A 2. Both clients have both replies. */
async function crossedGrants(stage: Stage) {
  const a = stage.actor();
  const b = stage.actor();
  await a.begins();
  await b.begins();
  await a.runs("acquire", 1);
  await stage.expires(1);
  await b.runs("acquire", 1);
  await b.executes("acquire", 2);
  await stage.expires(2);
  await a.runs("acquire", 2);
  await b.receives("acquire", 2);
  return { a, b };
}

test("C4a: a raise at a node whose greater grant was not counted gives the same fence twice", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await b.begins();
    await a.runs("acquire", 1);
    await stage.expires(1);
    await b.executes("acquire", 1);
    await a.executes("acquire", 2);
    await b.executes("acquire", 3);
    await stage.expires(3);
    await a.runs("acquire", 3);
    await a.runs("touch", 2);
    expect(a.fence).toBe(2n);
    await stage.expires(2);
    // B's late request is granted with 3, and B does not receive the reply.
    expect(await b.executes("acquire", 2)).toMatch(/ 3$/);
    await b.receives("acquire", 1);
    await b.receives("acquire", 3);
    const raise = await b.runs("touch", 2);
    await b.runsIfSent("touch", 3);
    return { a: a.fence, b: b.fence, raise: raise.split(" ").at(-1) };
  }
  const safe = await play(servers, asItIs, schedule);
  expect(safe).toEqual({ a: 2n, b: undefined, raise: "NEWER" });
  // Rule: touch, `tonumber(c) > t`.
  const broken = await play(servers, raiseIgnoresFence, schedule);
  expect(broken).toMatchObject({ a: 2n, b: 2n });
});

test("C4b: a repeated acquire must not be raised back to the fence of its first reply", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await b.begins();
    await a.executes("acquire", 1);
    await stage.expires(1);
    expect(await a.executes("acquire", 1)).toMatch(/ 2$/);
    await a.executes("acquire", 2);
    await stage.expires(2);
    await b.executes("acquire", 2);
    await stage.expires(2);
    // The driver sends A's acquire again: the node now has 3 for A, and A receives only the reply
    // 1.
    expect(await a.executes("acquire", 2)).toMatch(/ 3$/);
    await a.executes("acquire", 3);
    await stage.expires(3);
    await b.executes("acquire", 3);
    await a.receives("acquire", 1, 1);
    await a.receives("acquire", 2, 0);
    const raise = await a.runs("touch", 2);
    await a.runsIfSent("touch", 3);
    await b.receives("acquire", 2);
    await b.receives("acquire", 3);
    return { a: a.fence, b: b.fence, raise: raise.split(" ").at(-1) };
  }
  const safe = await play(servers, asItIs, schedule);
  expect(safe).toEqual({ a: undefined, b: 2n, raise: "NEWER" });
  // Rule: touch, `tonumber(c) > t`.
  const broken = await play(servers, raiseIgnoresFence, schedule);
  expect(broken).toMatchObject({ a: 2n, b: 2n });
});

test("C4: a node must not be raised if a repeated acquire has given its key a greater fence", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await b.begins();
    await a.executes("acquire", 1);
    await stage.expires(1);
    await a.executes("acquire", 1);
    await stage.expires(1);
    expect(await b.executes("acquire", 1)).toMatch(/ 3$/);
    await a.executes("acquire", 2);
    await stage.expires(2);
    await b.executes("acquire", 2);
    await b.executes("acquire", 3);
    await stage.expires(3);
    await a.executes("acquire", 3);
    await a.receives("acquire", 1, 1);
    await a.receives("acquire", 3);
    await b.receives("acquire", 2);
    await b.receives("acquire", 3);
    const raise = await b.runs("touch", 1);
    await b.runsIfSent("touch", 3);
    return { a: a.fence, b: b.fence, raise: raise.split(" ").at(-1) };
  }
  const safe = await play(servers, asItIs, schedule);
  expect(safe).toEqual({ a: 2n, b: undefined, raise: "NEWER" });
  // Rule: touch, `tonumber(c) > t`.
  const broken = await play(servers, raiseIgnoresFence, schedule);
  expect(broken).toMatchObject({ a: 2n, b: 2n });
});
