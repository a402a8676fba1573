import { expect, test } from "vitest";
import { QuorumError } from "../../src/index.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { nodeRecordCall } from "../../src/stores/redis/admission/node-record.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { shareServers } from "../support/shared-servers.ts";
import { without } from "./held-line.ts";
import {
  type Actor,
  play,
  quiet,
  resource,
  type Stage,
  type StageOptions,
  ttlMs,
} from "./stage.ts";

/**
 * Moments that random schedules hardly ever hit: an event between two steps that usually follow
 * each other at once. Played as in raise-counterexamples.test.ts, on real servers.
 */

const servers = shareServers(3);

const options = resolveStoreOptions({ maxTtl: ttlMs }, 3);
const strict: StageOptions = { admission: "strict" };
const admitting = ["node-record", "admit"] as const;
const all = [1, 2, 3] as const;

/**
 * Deletes the data of node `n`, and writes a record with a quarantine that began at `sinceMs` and
 * is over.
 */
async function blank(stage: Stage, n: number, sinceMs: number): Promise<void> {
  await stage.losesData(n);
  await stage.send(n, nodeRecordCall(options));
  await stage.server(n).command("HSET", "holdfast:node", "since", String(sinceMs));
}

async function readsAll(admin: Actor): Promise<void> {
  for (const n of all) await admin.runs("node-record", n);
}

/** Lets an actor acquire with the votes of nodes 1 and 3, if they grant. */
async function grantedByOneAndThree(stage: Stage): Promise<Actor> {
  const b = stage.actor();
  await b.begins();
  await b.runs("acquire", 3);
  await b.runs("acquire", 1);
  await b.runsIfSent("touch", 3);
  await b.runsIfSent("touch", 1);
  return b;
}

test("an admission is refused by a node that lost its data again after it was read", async () => {
  async function schedule(stage: Stage) {
    await blank(stage, 1, 1);
    const admin = stage.actor({}, { held: admitting });
    const looks = admin.store.nodes();
    await readsAll(admin);
    await readsAll(admin);
    // Before the `admit` arrives, another client has admitted the node, which granted and lost its
    // data again.
    await stage.actor().store.nodes();
    const a = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    await blank(stage, 1, 2);
    await a.runs("acquire", 2);
    await stage.expires(2);
    const reply = await admin.runs("admit", 1);
    await looks;
    // Admits node 1 if it is blank. The next client may not see it: it reads two of three records.
    await stage.actor().store.nodes();
    const b = await grantedByOneAndThree(stage);
    return { reply, fences: [a.fence, b.fence] };
  }
  const safe = await play(servers, strict, schedule);
  // Node 1 is admitted again for the next client, with the counters of node 2.
  expect(safe).toEqual({ reply: "C", fences: [1n, 2n] });
  // Rule: admit.lua, the record must be the one that was read.
  const admit = without(scripts.admit, "if kept[3] ~= ARGV[3] then return 'C' end");
  const broken = await play(servers, { ...strict, mutations: { admit } }, schedule);
  expect(broken).toEqual({ reply: "A", fences: [1n, 1n] });
});

test("an admission is given up if the second read leaves too few nodes to copy from", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    await a.runs("acquire", 2);
    await stage.expires(2);
    await blank(stage, 1, 1);
    const admin = stage.actor({}, { held: admitting });
    const looks = admin.store.nodes();
    await readsAll(admin);
    // Node 2, the only one that knows of the grant, restarts before it is read again.
    await admin.runs("node-record", 1);
    await admin.getsNoReply("node-record", 2);
    await admin.runs("node-record", 3);
    const admitted = await admin.runsIfSent("admit", 1);
    await looks;
    const b = await grantedByOneAndThree(stage);
    return { admitted, fences: [a.fence, b.fence] };
  }
  // Rule: admission.ts decides again after the second read. The fence of A is not repeated.
  const safe = await play(servers, strict, schedule);
  expect(safe.admitted).toBeUndefined();
  expect(safe.fences[0]).toBe(1n);
  expect(safe.fences[1]).not.toBe(1n);
});

test("a node admitted by clocks counts on from counters that are ahead of the clocks", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor({ proposes: 5_000 });
    await a.begins();
    for (const n of all) await a.runs("acquire", n);
    for (const n of all) await stage.expires(n);
    await blank(stage, 1, 1);
    await blank(stage, 2, 1);
    // The wall clocks of this and the next client are behind the counter of node 3.
    await stage.actor().store.nodes();
    const b = stage.actor();
    await b.begins();
    await b.runs("acquire", 1);
    await b.runs("acquire", 2);
    await b.runsIfSent("touch", 1);
    await b.runsIfSent("touch", 2);
    return [a.fence, b.fence] as const;
  }
  const [before, after = 0n] = await play(servers, strict, schedule);
  expect(before).toBe(5_000n);
  // Rule: admission.ts makes the greatest counter the floor.
  expect(after).toBeGreaterThan(5_000n);
});

test("a quorum that grants too late is reported as a fault, not as contention", async () => {
  const outcome = await play(servers, { admission: "off" }, async (stage) => {
    const a = stage.actor();
    await a.begins();
    await a.runs("acquire", 1);
    // No timer has fired when the second grant arrives.
    a.clock.nowMs += ttlMs;
    await a.runs("acquire", 2);
    return a.outcome;
  });
  expect(outcome).toMatchObject({ kind: "failed", retryable: true });
  const error = outcome?.kind === "failed" ? outcome.error : undefined;
  expect(error).toBeInstanceOf(QuorumError);
  expect(error?.message).toContain("too little of the TTL was left");
});

test("a release that a driver loses on a node that was not waited for is sent again", async () => {
  const left = await play(servers, { admission: "off" }, async (stage) => {
    const a = stage.actor();
    await a.begins();
    for (const n of all) await a.runs("acquire", n);
    if (a.grant === undefined) throw new Error("not granted");
    const released = a.store.release(a.grant);
    await a.runs("release", 1);
    await a.runs("release", 2);
    expect(await released).toEqual({ released: true });
    const [, , line] = a.lines;
    // The release to node 3 was lost without an error: no reply will come.
    const [lost] = line?.pending.splice(0) ?? [];
    expect(lost?.script).toBe("release");
    a.clock.advance(150);
    await quiet();
    await a.runsIfSent("release", 3);
    return await stage.server(3).command("EXISTS", resource);
  });
  expect(left).toBe(0);
});

/**
 * Returns an actor that skips node 3 in its next attempt, because the node has been silent too
 * long.
 */
async function leavesThirdAlone(stage: Stage): Promise<Actor> {
  const a = stage.actor({}, { nodeTimeout: 1_000 });
  // The second attempt is the probe of node 3.
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await a.begins();
    for (const n of [1, 2]) await a.runs("acquire", n);
    if (a.grant === undefined) throw new Error("not granted");
    void a.store.release(a.grant);
    for (const n of [1, 2]) await a.runs("release", n);
    a.clock.nowMs += attempt === 0 ? 2_000 : 0;
  }
  return a;
}

test("a node that is skipped gets a request after all if the others do not decide", async () => {
  const outcome = await play(servers, { admission: "off" }, async (stage) => {
    const a = await leavesThirdAlone(stage);
    await stage.server(2).command("SET", resource, "foreign");
    const [, , third] = a.lines;
    const before = third?.pending.length;
    await a.begins();
    expect(third?.pending.length).toBe(before);
    await a.runs("acquire", 1);
    await a.runs("acquire", 2);
    expect(third?.pending.length).toBe((before ?? 0) + 1);
    const asked = third?.pending.at(-1);
    if (third === undefined || asked === undefined) throw new Error("not asked");
    asked.answer(await third.execute(asked));
    await quiet();
    return a.outcome?.kind;
  });
  expect(outcome).toBe("granted");
});

test("a node that is skipped to the end counts as a failed vote", async () => {
  const outcome = await play(servers, { admission: "off" }, async (stage) => {
    const a = await leavesThirdAlone(stage);
    await a.begins();
    await a.runs("acquire", 1);
    // Node 2 does not answer either, in any round.
    for (let round = 0; round < 4; round += 1) {
      a.clock.advance(1_000);
      await quiet();
    }
    return a.outcome;
  });
  expect(outcome).toMatchObject({ kind: "failed" });
  const error = outcome?.kind === "failed" ? outcome.error : undefined;
  const votes = error instanceof QuorumError ? error.votes.map(({ vote }) => vote) : [];
  expect(votes).toEqual(["granted", "unknown", "failed"]);
});
