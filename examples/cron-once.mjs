/**
 * A schedule in a cluster: every process has the timer, and one of them runs each tick.
 *
 * A lock prevents two processes from running a tick at the same time. The number of the last tick,
 * stored with the result, prevents a second run later. Three processes take part, and one is
 * killed.
 */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createLocks } from "holdfast";
import { embedded } from "holdfast/embedded";

const everyMs = 400;
const [, , folder, name] = process.argv;

if (folder === undefined) await cluster();
else await member(folder, name);

/**
 * One process of the cluster.
 *
 * @param {string} folder
 * @param {string} name
 */
async function member(folder, name) {
  process.once("disconnect", () => process.exit());
  const locks = createLocks(embedded(join(folder, "locks")));
  for (;;) {
    await sleep(everyMs - (Date.now() % everyMs));
    const tick = Math.floor(Date.now() / everyMs);
    const lease = await locks.tryAcquire("cron:report", { ttl: "5s", renew: true, label: name });
    if (lease === undefined) continue; // another process is running it
    try {
      if (lastTick(folder) >= tick) continue; // another process has already run it
      await sleep(20); // stands for the report
      lease.assertHeld();
      // With a database: fencedUpdate(db, lease, { …, set: { tick } }), which refuses a late
      // writer.
      const register = join(folder, "last-tick");
      writeFileSync(`${register}.new`, String(tick));
      renameSync(`${register}.new`, register);
      process.send?.({ tick, name, fence: String(lease.fence) });
    } finally {
      await lease.release();
    }
  }
}

/** @param {string} folder */
function lastTick(folder) {
  try {
    return Number(readFileSync(join(folder, "last-tick"), "utf8"));
  } catch {
    return 0;
  }
}

async function cluster() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-cron-"));
  /** @type {{ tick: number, name: string, fence: string }[]} */
  const runs = [];
  const members = ["one", "two", "three"].map((name) => {
    const child = fork(fileURLToPath(import.meta.url), [folder, name]);
    child.on("message", (run) => {
      runs.push(run);
      console.log(`tick ${run.tick}: run by ${run.name}, fence ${run.fence}`);
    });
    return { name, child };
  });
  try {
    await runsUntil(4);
    const victim = members.find(({ name }) => name === runs.at(-1)?.name) ?? members[0];
    console.log(`kill -9 ${victim.name}`);
    victim.child.kill("SIGKILL");
    await runsUntil(8);
  } finally {
    await Promise.all(members.map(({ child }) => end(child)));
    rmSync(folder, { recursive: true, force: true });
  }
  const ticks = runs.map(({ tick }) => tick);
  assert.equal(new Set(ticks).size, ticks.length, "a tick was run twice");
  console.log(`${ticks.length} ticks, each run once`);

  /** @param {number} count */
  async function runsUntil(count) {
    const deadlineMs = Date.now() + 20_000;
    while (runs.length < count) {
      assert.ok(Date.now() < deadlineMs, "no tick was run for too long");
      await sleep(20);
    }
  }
}

/** @param {import("node:child_process").ChildProcess} child */
async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}
