import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fencedMode } from "../../src/stores/redis/commands/modes.ts";
import { Calls } from "../../src/stores/redis/commands/operation-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { verdictIn } from "../support/sent-operations.ts";
import { HeldLine } from "./held-line.ts";
import { ModelNode, StepCounter } from "./model-node.ts";
import { type Action, actions, World } from "./world.ts";

/**
 * The real client on model nodes, under arbitrary schedules: messages overtake each other, are
 * executed twice, late or never, replies are lost, keys expire at any moment, and other resources
 * use the same shard. For all completed acquisitions:
 * (a) no two have the same fence;
 * (b) one that began after another was complete has the greater fence;
 * (c) if a node confirmed both, it confirmed the smaller fence first.
 */

async function played(world: World, schedule: readonly Parameters<World["act"]>[0][]) {
  for (const action of schedule) await world.act(action);
  return world.violations();
}

describe.each([
  { nodeCount: 3, length: 60, numRuns: 2_000 },
  { nodeCount: 5, length: 100, numRuns: 500 },
])("$nodeCount nodes", ({ nodeCount, length, numRuns }) => {
  const proposals = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4 });

  test("fences are unique, increase over time and agree with the order on every node", async () => {
    let completed = 0;
    let overtaken = 0;
    await fc.assert(
      fc.asyncProperty(proposals, actions(length), async (proposed, schedule) => {
        const world = new World(nodeCount, proposed);
        expect(await played(world, schedule)).toEqual([]);
        completed += world.completed.length;
        if (world.completed.length > 1) overtaken += 1;
        // Once every message has arrived, no attempt is left undecided.
        expect(await world.finish()).toBe(0);
        expect(world.violations()).toEqual([]);
      }),
      { numRuns },
    );
    // The schedules must leave enough acquisitions that complete.
    expect(completed).toBeGreaterThan(numRuns / 10);
    expect(overtaken).toBeGreaterThan(0);
  });
});

test("random schedules find a duplicate if a raise does not check the key's fence", async () => {
  // A fixed seed, because this tests the power of the schedules and needs no other runs.
  const found = await fc.check(
    fc.asyncProperty(actions(60), async (schedule) => {
      const world = new World(3, [1, 1], false);
      return (await played(world, schedule)).length === 0;
    }),
    { numRuns: 20_000, seed: 42, endOnFailure: true },
  );
  expect(found.failed).toBe(true);
});

test("an attempt ends even if two replies of a node contradict each other", async () => {
  const world = new World(3, [1]);
  const [a] = world.actors;
  const act = async (kind: Action["kind"], node: number, pick = 0) =>
    await world.act({ kind, actor: 0, node, pick });
  await act("bump", 0);
  await act("begin", 0);
  // No node answers in time, so each gets a second request, and answers both later.
  await act("wait", 0);
  await act("run", 0);
  await act("run", 1);
  // Fences 2 and 1: node 1 has to be raised. Meanwhile node 0 lost the key, and grants it again.
  await act("expire", 0);
  await act("run", 0);
  // The raise, which is behind the second request: only one of the two can succeed.
  await act("run", 1, 1);
  await act("run", 2, 2);
  expect(await world.finish()).toBe(0);
  expect(a?.outcome?.kind).not.toBe("granted");
});

describe("the model", () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await server.stop();
  });

  const names = ["x", "y", "z"];
  const call = fc.record({
    kind: fc.constantFrom("acquire", "acquire", "touch", "release", "expire"),
    keys: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 2 }),
    owner: fc.constantFrom("a", "b"),
    number: fc.integer({ min: 1, max: 6 }),
  });

  test("replies as the scripts do on a real server", async () => {
    const protocol = new Calls(fencedMode(resolveStoreOptions({ admission: "off" }, 3)));
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 30 }), async (calls) => {
        await server.command("FLUSHALL");
        const model = new ModelNode(0, new StepCounter());
        const modelled = new HeldLine(model.backend, {}, []);
        const real = new HeldLine((command) => server.command(...command), {}, []);
        for (const { kind, keys, owner, number } of calls) {
          if (kind === "expire") {
            for (const key of keys) model.expire(key);
            await server.command("DEL", ...keys);
            continue;
          }
          const sent =
            kind === "release"
              ? protocol.release(keys, owner)
              : kind === "touch"
                ? protocol.touch(keys, owner, 0, number)
                : protocol.acquire(keys, owner, 10_000, number);
          const replies = [modelled, real].map((line) => line.send("", sent.first(false)));
          const [ofModel, ofServer] = (await Promise.all(replies)).map(timeless);
          expect(ofModel).toBe(ofServer);
        }
      }),
      { numRuns: 60 },
    );
  });

  /** Returns the verdict without a key's remaining life, which the model does not have. */
  function timeless(reply: unknown): string {
    const words = verdictIn(reply).split(" ");
    if (words[0] === "H") words[1] = "";
    return words.join(" ");
  }
});
