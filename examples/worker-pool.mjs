/**
 * Worker processes that share a folder of jobs. Each job has its own lock, so one worker does it at
 * a time. A finished job has a result file, so it is not done again. One worker is killed in the
 * middle of a job, and another worker does that job.
 */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createLocks } from "holdfast";
import { embedded } from "holdfast/embedded";

const jobs = Array.from({ length: 24 }, (_, index) => `job-${String(index + 1).padStart(2, "0")}`);
const [, , folder, name] = process.argv;

if (folder === undefined) await pool();
else await worker(folder, name);

/**
 * Works on jobs until all have a result.
 *
 * @param {string} folder
 * @param {string} name
 */
async function worker(folder, name) {
  process.once("disconnect", () => process.exit());
  const locks = createLocks(embedded(join(folder, "locks")));
  for (let open = openJobs(folder); open.length > 0; open = openJobs(folder)) {
    for (const job of open) {
      const lease = await locks.tryAcquire(job, { ttl: "5s", renew: true, label: name });
      if (lease === undefined) continue; // another worker is doing it
      try {
        // The job may have been finished between the listing and the lock.
        if (!existsSync(resultOf(folder, job))) await perform(folder, job, name, lease);
      } finally {
        await lease.release();
      }
    }
    await sleep(10);
  }
  await locks.close();
  process.disconnect();
}

/**
 * @param {string} folder
 * @param {string} job
 * @param {string} name
 * @param {import("holdfast").Lease} lease
 */
async function perform(folder, job, name, lease) {
  process.send?.({ job, name });
  await sleep(60, undefined, { signal: lease.signal });
  lease.assertHeld();
  const result = resultOf(folder, job);
  writeFileSync(`${result}.${name}`, JSON.stringify({ name, fence: String(lease.fence) }));
  renameSync(`${result}.${name}`, result);
}

/** @param {string} folder */
function openJobs(folder) {
  return jobs.filter((job) => !existsSync(resultOf(folder, job)));
}

/**
 * @param {string} folder
 * @param {string} job
 */
function resultOf(folder, job) {
  return join(folder, "results", `${job}.json`);
}

async function pool() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-pool-"));
  mkdirSync(join(folder, "results"));
  /** @type {Map<string, string[]>} */
  const begunBy = new Map();
  let killed = "";
  const workers = ["one", "two", "three"].map((name) => {
    const child = fork(fileURLToPath(import.meta.url), [folder, name]);
    child.on("message", (begun) => {
      begunBy.set(begun.job, [...(begunBy.get(begun.job) ?? []), begun.name]);
      if (begunBy.size !== 9 || killed !== "") return;
      killed = begun.name;
      console.log(`kill -9 ${begun.name}, in the middle of ${begun.job}`);
      child.kill("SIGKILL");
    });
    return child;
  });
  try {
    await Promise.all(workers.map((child) => once(child, "exit")));
    const results = readdirSync(join(folder, "results"));
    assert.equal(results.length, jobs.length, "a job was lost");
    for (const job of jobs) {
      const { name, fence } = JSON.parse(readFileSync(resultOf(folder, job), "utf8"));
      const begun = begunBy.get(job) ?? [];
      console.log(`${job}: begun by ${begun.join(", then ")}; finished by ${name}, fence ${fence}`);
      const living = begun.filter((worker) => worker !== killed);
      assert.ok(living.length <= 1, "a job was done by two");
    }
  } finally {
    for (const child of workers) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${jobs.length} jobs, each finished once`);
}
