import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { type BuiltPackage, buildPackage } from "./built-package.ts";
import { type Client, startClient } from "./client.ts";
import type { ClientPlan, Look, Outcome, Role } from "./client-plan.ts";
import type { Held } from "./documents.ts";
import { type Scene, setScene } from "./scene.ts";

/**
 * The scenario that fences are for, with a process for each client. A acquires and is stopped
 * (SIGSTOP) right before it writes. Its lease expires. B, which waits for the lock, acquires and
 * writes. A is resumed (SIGCONT).
 *
 * No step waits for a fixed time: B waits for the lock, and A for B.
 */

type Writes = ClientPlan["writes"];

const places: Readonly<Record<Writes, readonly string[]>> = {
  guarded: [
    "postgres row",
    "postgres guard table",
    "mariadb row",
    "mariadb guard table",
    "redis",
    "http",
  ],
  plain: ["postgres", "mariadb", "redis", "http"],
};

/** Nodes without a record may vote when they have been up for this long. */
const maxTtlMs = 3_000;
/** TTL of the lease that A sleeps through. B has to wait for that long. */
const shortTtlMs = 600;

let scene: Scene;
let built: BuiltPackage;

beforeAll(async () => {
  // The scene first, because its nodes have to be up for a while anyway.
  scene = await setScene();
  built = await buildPackage();
});

afterAll(async () => {
  built?.remove();
  await scene?.close();
});

watchLeaks();

interface Story {
  readonly resource: string;
  /** Resumed, and doing what its role says. */
  readonly a: Client;
  /** Has written and still holds the lock. */
  readonly b: Client;
  readonly fenceOfA: string;
  readonly fenceOfB: string;
}

let stories = 0;

async function pauseAcrossTenures(role: Role, writes: Writes): Promise<Story> {
  stories += 1;
  const resource = `invoice:${stories}`;
  await scene.prepare(resource);
  const { addresses } = scene;
  const plan = { packageFolder: built.folder, addresses, resource, maxTtlMs, writes };

  const a = startClient({ ...plan, role, value: "A", ttlMs: shortTtlMs });
  const { fence: fenceOfA } = await a.message("holding");
  if (role.kind === "blind") {
    // While the lease is valid, nothing refuses the write. Later only its fence is refused.
    expect((await a.message("wrote")).outcomes).toEqual(everywhere(writes, { kind: "written" }));
    await expectHeld(writes, resource, { value: "A", fence: fenceOfA });
  }
  await a.stop();

  const b = startClient({ ...plan, role: { kind: "prompt" }, value: "B", ttlMs: maxTtlMs });
  const { fence: fenceOfB } = await b.message("holding");
  expect(BigInt(fenceOfB)).toBeGreaterThan(BigInt(fenceOfA));
  expect((await b.message("wrote")).outcomes).toEqual(everywhere(writes, { kind: "written" }));
  await expectHeld(writes, resource, { value: "B", fence: fenceOfB });

  expect(a.isStopped).toBe(true);
  a.nudge();
  a.resume();
  return { resource, a, b, fenceOfA, fenceOfB };
}

/** Expects that B still holds the lock after A has written, released and closed its manager. */
async function expectStillHeld(b: Client): Promise<void> {
  b.nudge();
  expect(await b.message("proved")).toEqual({ kind: "proved", held: true });
  await b.ends();
}

async function expectHeld(writes: Writes, resource: string, held: Held): Promise<void> {
  if (writes === "guarded") {
    expect(await scene.guarded(resource)).toEqual(everywhere(writes, held));
  } else {
    expect(await scene.plain(resource)).toEqual(everywhere(writes, held.value));
  }
}

function everywhere<Value>(writes: Writes, value: Value): Record<string, Value> {
  return Object.fromEntries(places[writes].map((place) => [place, value]));
}

describe("a client that was stopped past its TTL and writes without checking its lease", () => {
  it("is refused by every guard, and the later holder's values stay", async () => {
    const story = await pauseAcrossTenures({ kind: "blind" }, "guarded");
    const { resource, a, b, fenceOfA: fence, fenceOfB: seen } = story;
    const { outcomes, events } = await a.message("wrote");
    await a.ends();

    const error = "FenceRejectedError";
    const refused: Outcome = { kind: "refused", error, resources: [resource], fence, seen };
    expect(outcomes).toEqual(everywhere("guarded", refused));
    const guards = ["postgres", "postgres", "mysql", "mysql", "redis", "http"];
    expect(events.rejections).toEqual(guards.map((guard) => ({ guard, resource, fence, seen })));
    expect(events.lost).toEqual([{ fence, reason: "expired" }]);
    // A while it held the lock, then B, then A again.
    expect(scene.statuses(resource)).toEqual([204, 204, 412]);

    await expectHeld("guarded", resource, { value: "B", fence: seen });
    await expectStillHeld(b);
  });

  it("overwrites the later holder's values in every place without a guard", async () => {
    const story = await pauseAcrossTenures({ kind: "blind" }, "plain");
    const { resource, a, b, fenceOfA: fence } = story;
    const { outcomes, events } = await a.message("wrote");
    await a.ends();

    expect(outcomes).toEqual(everywhere("plain", { kind: "written" }));
    expect(events).toEqual({ rejections: [], lost: [{ fence, reason: "expired" }] });
    await expectHeld("plain", resource, { value: "A, late", fence });
    await expectStillHeld(b);
  });
});

describe("a client that was stopped past its TTL and checks its lease first", () => {
  const lost = { error: "LeaseLostError", reason: "expired" };

  it.each<[Look, unknown, unknown]>([
    ["assertHeld", { threw: lost }, lost],
    ["signal.throwIfAborted", { threw: lost }, lost],
    ["signal.aborted", { value: true }, { ...lost, result: "the result of the work" }],
    ["remainingMs", { value: 0 }, { ...lost, result: "the result of the work" }],
  ])("sees the loss in %s, and `using` rejects", async (look, saw, using) => {
    const story = await pauseAcrossTenures({ kind: "careful", look }, "guarded");
    const { resource, a, b, fenceOfA, fenceOfB } = story;
    const seen = await a.message("looked");
    await a.ends();

    expect(seen).toEqual({
      kind: "looked",
      saw,
      using,
      events: { rejections: [], lost: [{ fence: fenceOfA, reason: "expired" }] },
    });
    await expectHeld("guarded", resource, { value: "B", fence: fenceOfB });
    await expectStillHeld(b);
  });
});
