import { type ChildProcess, fork } from "node:child_process";
import { once as onceEmitted } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Locks } from "../../src/index.ts";
import { once, OutcomeUnknownError } from "../../src/once/index.ts";
import { shareBuild } from "../redis/child-holder.ts";
import { shareRedis } from "../support/redis-harness.ts";
import { type MemoKind, shareMemos } from "./memos.ts";

const bench = shareRedis(1);
const build = shareBuild();
const kinds = shareMemos().filter(({ name }) => name !== "memory");
const script = fileURLToPath(new URL("charger.child.mjs", import.meta.url));
const moments = ["before-begun", "after-begun", "after-work", "after-done"] as const;
const key = "charge:42";

interface Message {
  readonly reached?: string;
  readonly receipt?: { readonly by: number };
  readonly code?: string;
  readonly cause?: string;
}

/** Starts a process that charges once, and waits until it is at its moment. */
async function startCharger(
  kind: MemoKind,
  place: string,
  moment: (typeof moments)[number],
): Promise<ChildProcess> {
  // Creates its table.
  await kind.open(place);
  const args = [bench.server(0).port, kind.name, kind.url, place, moment].map(String);
  const child = fork(script, [build.folder, ...args]);
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) await kill(child);
    await bench.server(0).command("FLUSHALL");
  });
  expect(await nextMessage(child)).toEqual({ reached: moment });
  return child;
}

async function nextMessage(child: ChildProcess): Promise<Message> {
  const [message] = (await onceEmitted(child, "message")) as [Message];
  return message;
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = onceEmitted(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** Charges in this process, and returns who has charged. */
async function charge(locks: Locks, kind: MemoKind, place: string): Promise<number> {
  const memo = await kind.open(place);
  const receipt = await once(locks, key, { memo }, async () => {
    await bench.server(0).command("INCR", "charges");
    return { by: process.pid };
  });
  return receipt.by;
}

async function charges(): Promise<number> {
  return Number(await bench.server(0).command("GET", "charges"));
}

describe.each(kinds)("work that is done once, with a memo in $name", (kind) => {
  test.each(moments)("in a process that is killed %s", async (moment) => {
    const place = `killed_${moment.replace("-", "_")}`;
    const locks = await bench.locks(1);
    const child = await startCharger(kind, place, moment);
    await kill(child);
    const isDone = moment === "after-done";
    // Only work that had not ended, as far as anyone can know, runs again.
    const hasCharged = moment === "after-work" || isDone;
    expect(await charge(locks, kind, place)).toBe(isDone ? child.pid : process.pid);
    expect(await charges()).toBe(hasCharged && !isDone ? 2 : 1);
    expect(await charge(locks, kind, place)).toBe(isDone ? child.pid : process.pid);
  });

  test.each(["after-begun", "after-work"] as const)(
    "is refused with `crash: refuse` if its process was killed %s",
    async (moment) => {
      const place = `refused_${moment.replace("-", "_")}`;
      const locks = await bench.locks(1);
      const before = moment === "after-work" ? 1 : 0;
      await kill(await startCharger(kind, place, moment));
      const memo = await kind.open(place);
      const options = { memo, crash: "refuse" } as const;
      const again = once(locks, key, options, () => expect.unreachable());
      await expect(again).rejects.toThrow(OutcomeUnknownError);
      expect(await charges()).toBe(before);
    },
  );

  test.each(["before-begun", "after-work"] as const)(
    "refuses a holder that was frozen %s, and wakes up when another one is done",
    async (moment) => {
      const place = `frozen_${moment.replace("-", "_")}`;
      const locks = await bench.locks(1);
      const child = await startCharger(kind, place, moment);
      child.kill("SIGSTOP");
      expect(await charge(locks, kind, place)).toBe(process.pid);
      const counted = await charges();
      child.kill("SIGCONT");
      child.send("go on");
      expect(await nextMessage(child)).toEqual({ code: "LEASE_LOST", cause: "FENCE_REJECTED" });
      // It has neither replaced the result nor charged after it.
      expect(await charges()).toBe(counted);
      expect(await charge(locks, kind, place)).toBe(process.pid);
    },
  );
});
