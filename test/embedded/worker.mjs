// A process for the tests. Arguments: the built package, the directory, a role, and arguments of
// that role. Reports events as lines on stdout.
import { appendFileSync, closeSync, fstatSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";

const [dist, directory, what, ...rest] = process.argv.slice(2);
const { createLocks } = await import(join(dist, "index.js"));
const { embedded } = await import(join(dist, "stores", "embedded", "index.js"));
const locks = createLocks(embedded(directory, { maxTtl: "24h" }));
const report = (line) => process.stdout.write(`${line}\n`);
const recordBytes = 64;

/** Acquires the lock and holds it until a line on stdin says otherwise. */
async function hold(resource, ttl) {
  const lease = await locks.acquire(resource, { ttl: Number(ttl), wait: "forever" });
  lease.signal.addEventListener("abort", () => report(`lost ${lease.signal.reason.reason}`));
  report(`held ${lease.fence}`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "release") report(`released ${(await lease.release()).released}`);
    if (line === "close") break;
  }
  await locks.close();
}

/** Acquires the lock and ends without a release. */
async function leave(resource, ttl) {
  const lease = await locks.acquire(resource, { ttl: Number(ttl) });
  report(`held ${lease.fence}`);
}

/**
 * Again and again: reads the length of the file, and writes the next record at that position. Two
 * processes at once would overwrite a record. `done` lists the records that were complete before
 * the release.
 */
async function sections(resource, file, done) {
  const retry = { minDelay: 1, maxDelay: 8 };
  for (let count = 1; ; count += 1) {
    const id = `${process.pid}-${count}`;
    await locks.using(
      resource,
      { ttl: "1h", wait: "forever", retry, renew: false },
      async (lease) => {
        writeFileSync(`${file}.in`, String(process.pid));
        const shared = openSync(file, "r+");
        const { size } = fstatSync(shared);
        for (let turns = Math.random() * 8; turns > 0; turns -= 1) await setImmediate();
        const record = `${size / recordBytes} ${lease.fence} ${id}`;
        writeSync(shared, `${record.padEnd(recordBytes - 1)}\n`, size);
        closeSync(shared);
        appendFileSync(done, `${id}\n`);
      },
    );
  }
}

/** Waits for the lock, and reports when it is in the queue. The test ends the process. */
async function queue(resource) {
  locks.on("contended", () => report("queued held"));
  await locks.acquire(resource, { ttl: "1h", wait: "forever" });
}

/** Makes one attempt, and reports its outcome. */
async function attempt(resource) {
  try {
    const lease = await locks.tryAcquire(resource, { ttl: "1h" });
    report(lease === undefined ? "held by others" : `held ${lease.fence}`);
    await lease?.release();
  } catch (error) {
    report(`${error.name} ${error.code} ${error.message}`);
  }
  await locks.close();
}

/** Acquires and releases until a line comes on stdin, and checks each outcome. */
async function writes() {
  const stop = new AbortController();
  createInterface({ input: process.stdin }).once("line", () => stop.abort());
  let last = 0n;
  while (!stop.signal.aborted) {
    const lease = await locks.acquire(`own ${process.pid}`, { wait: 0 });
    if (lease.fence <= last) throw new Error(`${lease.fence} after ${last}`);
    last = lease.fence;
    if (!(await lease.prove())) throw new Error("not ours");
    if (!(await lease.release()).released) throw new Error("not released");
    await setImmediate();
  }
  report("well");
  await locks.close();
  process.stdin.destroy();
}

/** Opens the directory, acquires its own lock, and closes the directory, `times` times. */
async function opens(times) {
  for (let count = 0; count < Number(times); count += 1) {
    const manager = createLocks(embedded(directory));
    if ((await manager.tryAcquire(`own ${process.pid}`)) === undefined) throw new Error("held");
    await manager.close();
  }
  report("well");
}

await { hold, leave, queue, writes, opens, sections, attempt }[what](...rest);
