/**
 * A job that takes much longer than its lease. The lease is renewed while the job runs. SIGTERM or
 * Ctrl-C stops it cleanly, and the next start continues it. Start it twice at the same time: the
 * second one waits.
 *
 *   node examples/long-job.mjs [folder]     the folder keeps the locks and the progress of the job
 */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocks } from "holdfast";
import { embedded } from "holdfast/embedded";

const folder = process.argv[2] ?? join(tmpdir(), "holdfast-example-long-job");
mkdirSync(folder, { recursive: true });
const checkpoint = join(folder, "checkpoint.json");
const steps = 20;

const locks = createLocks(embedded(join(folder, "locks")));
locks.on("renewed", ({ remainingMs }) =>
  console.log(`  renewed for ${Math.round(remainingMs)} ms`),
);
locks.on("lost", ({ reason }) => console.error(`  the lease is lost: ${reason}`));

const shutdown = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    console.log(`${signal}: finishing the step under way`);
    shutdown.abort();
  });
}

try {
  // `signal` ends the wait for the lock; the work below checks it between steps.
  const options = {
    ttl: "1s",
    wait: "forever",
    signal: shutdown.signal,
    label: `pid ${process.pid}`,
  };
  await locks.using("long-job", options, async (lease) => {
    let { step } = load();
    console.log(step === 0 ? "from the beginning" : `going on after step ${step}`);
    while (step < steps && !shutdown.signal.aborted) {
      lease.assertHeld();
      await sleep(150, undefined, { signal: lease.signal }); // rejects at once if the lease is lost
      step += 1;
      save({ step, fence: lease.fence });
      console.log(`step ${step} of ${steps}`);
    }
    if (step < steps) console.log(`stopped after step ${step}; start me again to go on`);
    else {
      console.log("done");
      save({ step: 0, fence: lease.fence });
    }
  });
} catch (error) {
  if (!shutdown.signal.aborted) throw error;
  console.log("stopped while waiting for the lock");
} finally {
  await locks.close(); // releases what is held, so that the next process need not wait for the TTL
}

/** @returns {{ step: number, fence: bigint }} */
function load() {
  try {
    const { step, fence } = JSON.parse(readFileSync(checkpoint, "utf8"));
    return { step, fence: BigInt(fence) };
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return { step: 0, fence: 0n };
  }
}

/**
 * Saves the checkpoint with its fence, so that a late holder does not set it back. A file cannot
 * compare and write in one step, but a database can: see fenced-postgres.mjs.
 *
 * @param {{ step: number, fence: bigint }} state
 */
function save({ step, fence }) {
  if (fence < load().fence) throw new Error("a later holder has gone on with the job");
  writeFileSync(`${checkpoint}.new`, JSON.stringify({ step, fence: String(fence) }));
  renameSync(`${checkpoint}.new`, checkpoint);
}
