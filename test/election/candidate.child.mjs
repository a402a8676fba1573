// @ts-check
/**
 * A process that stands for election. Started with the folder of a build of the library, the ports
 * of the servers, and a name for its writes. Its work writes to a guarded value without regard to
 * the signal of its term, as careless work does, and counts what the guard does.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";

const [build = "", portList = "", name = ""] = process.argv.slice(2);
const { createLocks } = await import(pathToFileURL(`${build}/index.js`).href);
const { redlock } = await import(pathToFileURL(`${build}/stores/redis/index.js`).href);
const { fencedSet } = await import(pathToFileURL(`${build}/fencing/redis.js`).href);
const { lead } = await import(pathToFileURL(`${build}/election/index.js`).href);

const ports = portList.split(",").map(Number);
const clients = ports.map((port) => new Redis({ host: "127.0.0.1", port }));
const locks = createLocks(redlock(clients, { admission: "off" }));
const ttl = 1_000;
const writesAfterPause = 20;

/** @param {object} message */
function send(message) {
  process.send?.(message);
}

/** @param {any} term */
async function serve(term) {
  let lastMs = performance.now();
  for (;;) {
    const pausedMs = performance.now() - lastMs;
    lastMs = performance.now();
    // Was stopped: the test resumes this process when a successor has written. Writes on, as if
    // nothing had happened.
    if (pausedMs > ttl / 2) {
      const outcomes = [];
      for (let count = 0; count < writesAfterPause; count += 1) outcomes.push(await write(term));
      send({ kind: "resumed", outcomes, aborted: term.signal.aborted });
      return;
    }
    if (term.signal.aborted) return;
    await write(term);
    await sleep(5);
  }
}

/** @param {any} term */
async function write(term) {
  try {
    await fencedSet(clients[0], term, "guarded", `${name} ${term.fence}`);
    return "accepted";
  } catch (error) {
    return /** @type {{ code: string }} */ (error).code;
  }
}

const candidate = lead(locks, "scheduler", { ttl, label: name }, serve);
candidate.on("elected", (/** @type {any} */ event) => {
  send({ kind: "elected", fence: String(event.fence) });
});
candidate.on("deposed", (/** @type {any} */ event) => {
  send({ kind: "deposed", reason: event.reason });
});

/** @param {unknown} order */
async function obey(order) {
  if (order === "resign") await candidate.resign();
  if (order !== "stop") return;
  await candidate.stop();
  await locks.close();
  for (const client of clients) client.disconnect();
  process.disconnect();
}

process.on("message", (order) => void obey(order));
send({ kind: "ready" });
