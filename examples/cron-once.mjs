/**
 * A schedule in a cluster: every process has the timer, and each tick is run in one of them.
 *
 * Three processes take part, and the one that ran the last tick is killed. The others go on, and no
 * tick runs twice. The times can come from a cron library as well: `{ at: new Cron("0 3 * * *") }`.
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
import { embedded } from "holdfast/embedded";
import { schedule } from "holdfast/schedule";

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
  const locks = createLocks(embedded(join(folder, "locks")), { ttl: "1s" });
  // With a database: pass run.lease to its guard, which refuses a run that comes too late.
  const report = schedule(locks, "report", { every: "400ms", label: name }, async (run) => {
    await sleep(20, undefined, { signal: run.signal }); // stands for the report
    process.send?.({ tick: run.tick.getTime(), name, fence: String(run.lease.fence) });
  });
  report.on("tick-missed", ({ tick, reason }) => console.log(`  ${tick.toISOString()} ${reason}`));
  process.once("disconnect", () => process.exit());
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
