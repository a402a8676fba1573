import { expect, test } from "vitest";
import { fencedMode } from "../../src/stores/redis/commands/modes.ts";
import { Calls } from "../../src/stores/redis/commands/operation-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { greatestCounters } from "../../src/stores/redis/admission/admission-rule.ts";
import {
  admitCall,
  nodeRecordCall,
  type NodeRecord,
} from "../../src/stores/redis/admission/node-record.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { shareServers } from "../support/shared-servers.ts";
import { without } from "./held-line.ts";
import { play, resource, type Stage, type StageOptions, ttlMs } from "./stage.ts";
import { quarantineMs } from "../../src/stores/redis/protocol/store-settings.ts";

/**
 * Schedules in which a node loses its data and comes back too soon, or with too little of it.
 * Played as in raise-counterexamples.test.ts: on real servers, with the rule and without it. A
 * node that "loses its data" is flushed; test/admission has the same with servers that really
 * restart. A quarantine passes by moving its start back.
 */

const servers = shareServers(3);

const options = resolveStoreOptions({ maxTtl: ttlMs }, 3);
const strict: StageOptions = { admission: "strict" };

/** The granting scripts without the line that keeps a node from voting until it is admitted. */
const votesAtOnce: StageOptions = {
  ...strict,
  mutations: {
    fenced: without(scripts.fenced, "if strict and st ~= 'A' then", "if false then"),
  },
};

/**
 * Reads every node as an administrator's client does, and admits the nodes that may be admitted.
 */
async function admitAsItIs(stage: Stage): Promise<void> {
  await stage.actor().store.nodes();
}

async function recordOf(stage: Stage, n: number): Promise<NodeRecord> {
  return await stage.send(n, nodeRecordCall(options));
}

/** Admits node 1 by a weaker rule: with these counters, after this wait. */
async function admitNaively(stage: Stage, from: readonly NodeRecord[], waitMs: number) {
  const record = await recordOf(stage, 1);
  const { counters, floor } = greatestCounters(from);
  const call = admitCall({
    mode: "copy",
    record,
    quarantineMs: waitMs,
    floor,
    wallUs: 0,
    counters,
  });
  return await stage.send(1, call);
}

test("C6: a node that comes back empty and votes at once lets two clients hold the lock at once", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    const b = stage.actor();
    await a.begins();
    await b.begins();
    await a.runs("acquire", 1);
    await a.runs("acquire", 2);
    await b.runs("acquire", 3);
    await stage.losesData(1);
    await b.runs("acquire", 1);
    await b.runsIfSent("touch", 3);
    return [a.grant, b.grant].filter((grant) => grant !== undefined).length;
  }
  expect(await play(servers, strict, schedule)).toBe(1);
  // Rule: _record.lua, `st ~= 'A'`: no vote before admission.
  expect(await play(servers, votesAtOnce, schedule)).toBe(2);
});

test("C6: a node must not be admitted shortly before its quarantine is over", async () => {
  async function schedule(stage: Stage) {
    await stage.losesData(1);
    await recordOf(stage, 1);
    const others = [await recordOf(stage, 2), await recordOf(stage, 3)];
    const waitMs = quarantineMs(options, ttlMs);
    const [seconds] = (await stage.server(1).command("TIME")) as [string];
    // All but two seconds of the quarantine have passed.
    const since = Number(seconds) * 1_000 - waitMs + 2_000;
    await stage.server(1).command("HSET", "holdfast:node", "since", String(since));
    await admitAsItIs(stage);
    await admitNaively(stage, others, waitMs);
    return (await recordOf(stage, 1)).admitted;
  }
  expect(await play(servers, strict, schedule)).toBe(false);
  // Rule: admit.lua, `if left > 0`, by the node's own clock.
  const admit = without(scripts.admit, "if left > 0 then", "if false then");
  expect(await play(servers, { ...strict, mutations: { admit } }, schedule)).toBe(true);
});

test("C7: confirming every grant in a second round does not replace the quarantine", async () => {
  const calls = new Calls(fencedMode(options));
  async function schedule(stage: Stage) {
    const grant = async (owner: string, n: number) =>
      await stage.send(n, calls.acquire([resource], owner, ttlMs, 1));
    const confirm = async (owner: string, n: number) =>
      (await stage.send(n, calls.touch([resource], owner, 0, 1))).kind === "done";
    await grant("a", 1);
    await grant("a", 2);
    await grant("b", 3);
    const ofA = [await confirm("a", 1)];
    await stage.losesData(1);
    await grant("b", 1);
    ofA.push(await confirm("a", 2));
    const ofB = [await confirm("b", 1), await confirm("b", 3)];
    return [ofA, ofB].map((confirms) => confirms.filter(Boolean).length);
  }
  // Two confirmations are a quorum. With the rule only A has one, with fence 1.
  expect(await play(servers, strict, schedule)).toEqual([2, 1]);
  // Rule: as for C6. (A rule "go slow if a counter is missing" is not part of this design.)
  expect(await play(servers, votesAtOnce, schedule)).toEqual([2, 2]);
});

/** A has fence 1 from node 1, which then lost its data, and from node 2. A's lease is over. */
async function forgottenGrant(stage: Stage) {
  const a = stage.actor();
  await a.begins();
  await a.runs("acquire", 1);
  await stage.losesData(1);
  await a.runs("acquire", 2);
  await stage.expires(2);
  return a;
}

/** Lets B acquire with the votes of nodes 1 and 3, if they grant. */
async function grantedByOneAndThree(stage: Stage) {
  const b = stage.actor();
  await b.begins();
  await b.runs("acquire", 3);
  await b.runs("acquire", 1);
  await b.runsIfSent("touch", 3);
  await b.runsIfSent("touch", 1);
  return b;
}

test("C8: after a quarantine without a copy of the counters a fence is repeated", async () => {
  async function schedule(stage: Stage) {
    const a = await forgottenGrant(stage);
    await recordOf(stage, 1);
    await stage.quarantinePasses(1);
    await admitAsItIs(stage);
    const b = await grantedByOneAndThree(stage);
    return [a.fence, b.fence];
  }
  expect(await play(servers, strict, schedule)).toEqual([1n, 2n]);
  // Rule: admit.lua copies the counters of the other nodes.
  const admit = without(scripts.admit, "for i = 7, #ARGV, 2 do", "for i = 7, 0, 2 do");
  expect(await play(servers, { ...strict, mutations: { admit } }, schedule)).toEqual([1n, 1n]);
});

test("C8a: without quarantine and copy a fence is repeated at once", async () => {
  async function schedule(stage: Stage) {
    const a = await forgottenGrant(stage);
    const b = await grantedByOneAndThree(stage);
    return [a.fence, b.fence];
  }
  expect(await play(servers, strict, schedule)).toEqual([1n, undefined]);
  // Rule: _record.lua, `st ~= 'A'`.
  expect(await play(servers, votesAtOnce, schedule)).toEqual([1n, 1n]);
});

test("C9: a copy without a quarantine misses a grant that a late vote completes afterwards", async () => {
  async function schedule(stage: Stage, admit: (stage: Stage) => Promise<unknown>) {
    const a = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    await stage.losesData(1);
    await recordOf(stage, 1);
    await admit(stage);
    await a.runs("acquire", 2);
    const b = await grantedByOneAndThree(stage);
    return [a.fence, b.fence];
  }
  const safe = await play(servers, strict, (stage) => schedule(stage, admitAsItIs));
  expect(safe).toEqual([1n, undefined]);
  // Rule: the quarantine (admission-rule.ts, `leftMs`; admit.lua, `left > 0`).
  const broken = await play(servers, strict, (stage) =>
    schedule(stage, async () => {
      await admitNaively(stage, [await recordOf(stage, 2), await recordOf(stage, 3)], 0);
    }),
  );
  expect(broken).toEqual([1n, 1n]);
});

test("C10: the counters to copy must be read after the quarantine, not before it", async () => {
  async function schedule(stage: Stage, naive: boolean) {
    const a = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    await stage.losesData(1);
    // An administrator reads too early, when the grant is not complete, and again at the end.
    const admin = stage.actor();
    await admin.store.nodes();
    const early = [await recordOf(stage, 2), await recordOf(stage, 3)];
    await a.runs("acquire", 2);
    await stage.quarantinePasses(1);
    if (naive) await admitNaively(stage, early, quarantineMs(options, ttlMs));
    else await admin.store.nodes();
    const b = await grantedByOneAndThree(stage);
    return [a.fence, b.fence];
  }
  expect(await play(servers, strict, (stage) => schedule(stage, false))).toEqual([1n, 2n]);
  // Rule: admission.ts reads the counters again once a node may be admitted (`#read(false)`).
  expect(await play(servers, strict, (stage) => schedule(stage, true))).toEqual([1n, 1n]);
});

test.each([
  ["C11: the node's own counters are no part of the quorum it copies from", [1, 3]],
  ["C11b: a quorum of others is needed, not one less", [3]],
] as const)("%s", async (_, from) => {
  async function schedule(stage: Stage, naive: boolean) {
    const a = await forgottenGrant(stage);
    await recordOf(stage, 1);
    await stage.quarantinePasses(1);
    if (naive) {
      const read = await Promise.all(from.map((n) => recordOf(stage, n)));
      await admitNaively(stage, read, quarantineMs(options, ttlMs));
    } else {
      // Node 2, the only one with the counter, does not answer this administrator.
      await stage.actor({ cutOff: [2] }).store.nodes();
    }
    const { admitted } = await recordOf(stage, 1);
    // An administrator that reaches all nodes admits node 1 by the rule, if it is not admitted yet.
    await admitAsItIs(stage);
    const b = await grantedByOneAndThree(stage);
    return { admitted, fences: [a.fence, b.fence] };
  }
  const safe = await play(servers, strict, (stage) => schedule(stage, false));
  expect(safe).toEqual({ admitted: false, fences: [1n, 2n] });
  // Rule: admission-rule.ts, `admitted.length >= size` among `others`.
  const broken = await play(servers, strict, (stage) => schedule(stage, true));
  expect(broken).toEqual({ admitted: true, fences: [1n, 1n] });
});
