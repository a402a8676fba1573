/**
 * One leader among several processes, handed over on a deploy without a gap and without an overlap.
 *
 * Two processes of version 1 stand for election. The deploy starts two of version 2, then ends those
 * of version 1 with SIGTERM. The old leader finishes the step under way before its successor begins.
 * At last a leader is killed, and another one takes over when the lease has run out.
 */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createLocks } from "holdfast";
import { lead, leaders } from "holdfast/election";
import { embedded } from "holdfast/embedded";

const [, , folder, name] = process.argv;

if (folder === undefined) await deploy();
else await member(folder, name);

/**
 * One process of the service.
 *
 * @param {string} folder
 * @param {string} label
 */
async function member(folder, label) {
  const locks = createLocks(embedded(folder), { ttl: "1s" });
  const candidate = lead(locks, "scheduler", { label }, async (term) => {
    process.send?.({ begins: label, fence: String(term.fence) });
    while (!term.signal.aborted) await sleep(20); // one step of the work, which is never cut short
    process.send?.({ ends: label });
  });
  const stop = async () => {
    await candidate.stop(); // the successor begins only after the work here has ended
    await locks.close();
    process.disconnect();
  };
  process.once("SIGTERM", () => void stop());
  process.once("disconnect", () => process.exit());
  process.send?.({ ready: label });
}

async function deploy() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-leader-"));
  /** @type {{ begins?: string, ends?: string, ready?: string, fence?: string }[]} */
  const messages = [];
  /** @type {Map<string, import("node:child_process").ChildProcess>} */
  const members = new Map();
  const locks = createLocks(embedded(folder));
  const following = follow(locks);
  try {
    await start("v1-a");
    await until(() => leader() === "v1-a");
    await start("v1-b");

    console.log("deploy: start version 2, then SIGTERM for version 1");
    await start("v2-a");
    await start("v2-b");
    for (const name of ["v1-b", "v1-a"]) await end(name, "SIGTERM");
    await until(() => leader()?.startsWith("v2") === true);

    const victim = String(leader());
    console.log(`kill -9 ${victim}`);
    await end(victim, "SIGKILL");
    await until(() => leader() !== victim);

    const steps = messages.filter(({ begins, ends }) => begins ?? ends);
    const [first, ended, second] = steps;
    assert.deepEqual([first.begins, ended.ends], ["v1-a", "v1-a"], "the hand-over overlapped");
    assert.ok(second.begins?.startsWith("v2"));
    const fences = steps.flatMap(({ fence }) => (fence === undefined ? [] : [BigInt(fence)]));
    assert.ok(fences.every((fence, index) => index === 0 || fence > fences[index - 1]));
    console.log(`${fences.length} terms, each with a greater fence, and no two at once`);
  } finally {
    await Promise.all([...members.keys()].map((name) => end(name, "SIGKILL")));
    await locks.close();
    await following;
    rmSync(folder, { recursive: true, force: true });
  }

  /** @param {string} name */
  async function start(name) {
    const child = fork(fileURLToPath(import.meta.url), [folder, name]);
    child.on("message", (message) => messages.push(message));
    members.set(name, child);
    await until(() => messages.some(({ ready }) => ready === name));
  }

  /** @param {string} name @param {NodeJS.Signals} signal */
  async function end(name, signal) {
    const child = members.get(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill(signal);
    await exit;
  }

  function leader() {
    return messages.findLast(({ begins }) => begins !== undefined)?.begins;
  }

  /** @param {() => boolean} condition */
  async function until(condition) {
    const deadlineMs = Date.now() + 20_000;
    while (!condition()) {
      assert.ok(Date.now() < deadlineMs, "there was no leader for too long");
      await sleep(5);
    }
  }
}

/** Prints who leads. @param {import("holdfast").Locks} locks */
async function follow(locks) {
  for await (const { state, label, term } of leaders(locks, "scheduler", { every: "20ms" })) {
    console.log(state === "led" ? `  ${label} leads, term ${term}` : `  ${state}`);
  }
}
