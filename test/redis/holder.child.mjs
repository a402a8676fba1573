// @ts-check
/**
 * A process that acquires locks on request. Started with the folder of a build of the library and
 * the ports of the servers. Requests and answers are sent over the IPC channel.
 */
import { closeSync, openSync, appendFileSync, unlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";

const [build = "", ...ports] = process.argv.slice(2);
const { createLocks } = await import(pathToFileURL(`${build}/index.js`).href);
const { redlock } = await import(pathToFileURL(`${build}/stores/redis/index.js`).href);

const clients = ports.map((port) => new Redis({ host: "127.0.0.1", port: Number(port) }));
const locks = createLocks(redlock(clients, { admission: "off" }), {
  wait: "60s",
  retry: { minDelay: 1, maxDelay: 20 },
});

/** @param {object} answer */
function send(answer) {
  process.send?.(answer);
}

/** @param {unknown} error */
function describe(error) {
  const { name, reason, result } = /** @type {Record<string, unknown>} */ (error ?? {});
  return { name, reason, result };
}

/**
 * Acquires the lock again and again. A file that may exist only once, and is independent of Redis,
 * shows whether another process was inside.
 * @param {{ resource: string, times: number, file: string }} order
 */
async function contend({ resource, times, file }) {
  let overlaps = 0;
  for (let turn = 0; turn < times; turn += 1) {
    await locks.using(resource, { ttl: "10s" }, async (/** @type {any} */ lease) => {
      try {
        closeSync(openSync(file, "wx"));
      } catch {
        overlaps += 1;
      }
      appendFileSync(`${file}.fences`, `${lease.fence}\n`);
      await sleep(1);
      unlinkSync(file);
    });
  }
  send({ overlaps });
}

/**
 * Holds the lock with renewals, and checks it on every tick. Reports the first check after the
 * process was stopped for longer than the TTL, which is what user code sees first.
 * @param {{ resource: string, ttl: number }} order
 */
async function hold({ resource, ttl }) {
  /** @type {object | undefined} */
  let firstLook;
  try {
    await locks.using(resource, { ttl }, async (/** @type {any} */ lease) => {
      // Read before the answer, because the process may be stopped at any moment afterwards.
      let lastMs = performance.now();
      send({ holding: true, fence: String(lease.fence) });
      while (firstLook === undefined) {
        await sleep(5);
        const pausedMs = performance.now() - lastMs;
        lastMs = performance.now();
        if (pausedMs < ttl) continue;
        firstLook = { state: lease.state, aborted: lease.signal.aborted };
      }
      return "finished";
    });
    send({ firstLook });
  } catch (error) {
    send({ firstLook, error: describe(error) });
  }
}

/**
 * Computes for longer than the lease lasts, without a turn of the event loop.
 * @param {{ resource: string, ttl: number }} order
 */
async function block({ resource, ttl }) {
  /** @type {object[]} */
  const looks = [];
  try {
    await locks.using(resource, { ttl }, async (/** @type {any} */ lease) => {
      const look = (/** @type {string} */ from) =>
        looks.push({ from, state: lease.state, aborted: lease.signal.aborted });
      setTimeout(() => look("timer"), 1);
      setImmediate(() => look("immediate"));
      queueMicrotask(() => look("microtask after the work began"));
      const untilMs = performance.now() + ttl + 50;
      while (performance.now() < untilMs);
      look("the work itself");
      await sleep(20);
      return "finished";
    });
    send({ looks });
  } catch (error) {
    send({ looks, error: describe(error) });
  }
}

/** @param {any} order */
async function obey(order) {
  if (order.kind === "contend") await contend(order);
  else if (order.kind === "hold") await hold(order);
  else if (order.kind === "block") await block(order);
  else {
    await locks.close();
    for (const client of clients) client.disconnect();
    process.disconnect();
  }
}

process.on("message", (order) => void obey(order));
send({ ready: true });
