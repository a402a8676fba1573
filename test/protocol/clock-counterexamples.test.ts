import { expect, test } from "vitest";
import { counterKeyOf } from "../../src/stores/redis/commands/keys.ts";
import { clusterMode } from "../../src/stores/redis/commands/modes.ts";
import { Calls } from "../../src/stores/redis/commands/operation-call.ts";
import type { NodeCall } from "../../src/stores/redis/commands/node-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import type { AcquireReply } from "../../src/stores/redis/commands/operation.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { eventually } from "../support/redis-eventually.ts";
import { shareServers } from "../support/shared-servers.ts";
import { without } from "./held-line.ts";
import { play, resource, type Stage, type StageOptions, ttlMs } from "./stage.ts";
import { driftMs, quarantineMs } from "../../src/stores/redis/protocol/store-settings.ts";

/**
 * Schedules in which clocks alone would have to keep fences in order, and fail by a little. While
 * the counters of a majority are intact, nothing depends on clocks: the copy of the counters
 * decides. After a majority was lost, the reading of a clock goes into the floor and into every
 * proposal.
 */

const servers = shareServers(3);

const strict: StageOptions = { admission: "strict" };
const noCopy: StageOptions = {
  ...strict,
  mutations: { admit: without(scripts.admit, "for i = 7, #ARGV, 2 do", "for i = 7, 0, 2 do") },
};

async function readmitFirst(stage: Stage): Promise<void> {
  const admin = stage.actor();
  await admin.store.nodes();
  await stage.quarantinePasses(1);
  await admin.store.nodes();
}

async function grantedByOneAndThree(stage: Stage, proposes: number) {
  const actor = stage.actor({ proposes });
  await actor.begins();
  await actor.runs("acquire", 3);
  await actor.runs("acquire", 1);
  await actor.runsIfSent("touch", 3);
  await actor.runsIfSent("touch", 1);
  return actor.fence;
}

test("C19: fences that grew faster than the clock are repeated if only the clock decides", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor({ proposes: 1 });
    const b = stage.actor({ proposes: 1 });
    await a.begins();
    await b.begins();
    await a.executes("acquire", 1);
    await stage.expires(1);
    await b.runs("acquire", 1);
    await stage.losesData(1);
    await a.executes("acquire", 2);
    await stage.expires(2);
    await b.runs("acquire", 2);
    await stage.expires(2);
    await readmitFirst(stage);
    // By every clock one tick has passed, but there were two grants.
    return [b.fence, await grantedByOneAndThree(stage, 2)];
  }
  expect(await play(servers, strict, schedule)).toEqual([2n, 3n]);
  // Rule: the copy (admit.lua). On clocks alone, fences of a shard must not outgrow microseconds.
  expect(await play(servers, noCopy, schedule)).toEqual([2n, 2n]);
});

test("C20: after a majority was lost, the clock prevents a fence below an earlier one", async () => {
  const noFloor = without(scripts.admit, "if tonumber(kept[5] or 0) < floor then", "if false then");
  async function schedule(stage: Stage, proposes: number) {
    const a = stage.actor({ proposes: 5 });
    await a.begins();
    await a.runs("acquire", 1);
    await a.runs("acquire", 2);
    for (const n of [1, 2]) await stage.losesData(n);
    const admin = stage.actor({ proposes: 9 });
    await admin.store.nodes();
    for (const n of [1, 2]) await stage.quarantinePasses(n);
    const modes: string[] = [];
    admin.events.on("node-admitted", ({ mode }) => modes.push(mode));
    await admin.store.nodes();
    expect(modes).toEqual(["clock", "clock"]);
    return [a.fence, await grantedByOneAndThree(stage, proposes)];
  }
  // The floor alone keeps a client whose clock stands still above the fences of the lost nodes.
  expect(await play(servers, strict, (stage) => schedule(stage, 1))).toEqual([5n, 10n]);
  // So do proposals alone.
  const proposalsOnly = { ...strict, mutations: { admit: noFloor } };
  expect(await play(servers, proposalsOnly, (stage) => schedule(stage, 9))).toEqual([5n, 9n]);
  // It fails without both (Rule: admission.ts, `wallUs` in the floor; proposals.ts, `wallMs`).
  expect(await play(servers, proposalsOnly, (stage) => schedule(stage, 1))).toEqual([5n, 1n]);
});

test("C20b: on clocks alone, the quarantine must outlast a lease and both clocks' errors", async () => {
  async function schedule(stage: Stage) {
    const a = stage.actor({ proposes: 2 });
    await a.begins();
    await a.runs("acquire", 1);
    await stage.losesData(1);
    await a.runs("acquire", 2);
    await stage.expires(2);
    await readmitFirst(stage);
    // B's clock is behind: it proposes the same fence as A.
    return [a.fence, await grantedByOneAndThree(stage, 2)];
  }
  expect(await play(servers, strict, schedule)).toEqual([2n, 3n]);
  // Rule: the copy. Without it, two such clocks are enough to repeat a fence.
  expect(await play(servers, noCopy, schedule)).toEqual([2n, 2n]);
  // Without a quorum to copy from (clock mode), clocks may differ by the drift in each direction.
  const options = resolveStoreOptions({ maxTtl: ttlMs }, 3);
  const validityMs = ttlMs - driftMs(options, ttlMs);
  const slackMs = quarantineMs(options, ttlMs) - validityMs;
  expect(slackMs).toBeGreaterThanOrEqual(2 * driftMs(options, ttlMs));
});

test("C20c: a counter beside its lock (Cluster only) must outlive leases and clocks' errors", async () => {
  async function schedule(stage: Stage, retentionMs: string | undefined) {
    const grant = async (owner: string, n: number) => {
      const call = new Calls(clusterMode).acquire([resource], owner, ttlMs, 2);
      const sent = call.first(false);
      // The retention is before the operations.
      const at = 3 + Number(sent[2]) + 2;
      const command = retentionMs === undefined ? sent : sent.with(at, retentionMs);
      const reply = await stage.send(n, { ...methods(call), first: () => command });
      return reply.kind === "granted" ? reply.fence : undefined;
    };
    const a = [await grant("a", 1), await grant("a", 2)];
    const keptMs = Number(await stage.server(1).command("PTTL", counterKeyOf(resource)));
    if (retentionMs !== undefined) {
      const counter = counterKeyOf(resource);
      await eventually(async () => (await stage.server(1).command("EXISTS", counter)) === 0);
    }
    await stage.expires(1);
    // B's clock is behind: it proposes the same fence as A.
    const b = [await grant("b", 1), await grant("b", 3)];
    return { a: Math.max(...a.map(Number)), b: Math.max(...b.map(Number)), keptMs };
  }
  const off = { admission: "off" } as const;
  const safe = await play(servers, off, (stage) => schedule(stage, undefined));
  expect(safe).toMatchObject({ a: 2, b: 3 });
  // In all other modes counters are in the node record, which has no TTL.
  expect(safe.keptMs).toBeGreaterThan(100 * ttlMs);
  // Rule: the retention in modes.ts. Here it is shorter than the lease.
  expect(await play(servers, off, (stage) => schedule(stage, "1"))).toMatchObject({ a: 2, b: 2 });
});

function methods(call: NodeCall<AcquireReply>): NodeCall<AcquireReply> {
  return {
    key: call.key,
    first: (verify) => call.first(verify),
    fallback: (error) => call.fallback(error),
    read: (reply, byFallback) => call.read(reply, byFallback),
  };
}
