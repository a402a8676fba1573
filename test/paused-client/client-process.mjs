// @ts-check
/** A client in its own process; `client-plan.ts` describes its roles. */

import { once } from "node:events";
import { readSync, writeSync } from "node:fs";
import { Redis } from "ioredis";
import { connect, loadPackage, writeAll } from "./client-writes.mjs";

/** @typedef {import("./client-plan.ts").Message} Message */
/** @typedef {import("../../src/index.ts").Lease} Lease */

/** @type {import("./client-plan.ts").ClientPlan} */
const plan = JSON.parse(process.argv[2] ?? "");
const { resource, role, addresses, maxTtlMs, ttlMs } = plan;

const holdfast = await loadPackage(plan.packageFolder);
const connections = await connect(plan);
const nodes = addresses.lockPorts.map((port) => new Redis({ host: "127.0.0.1", port }));
const store = holdfast.stores.redlock(nodes, { maxTtl: maxTtlMs, nodeTimeout: "1s" });
const locks = holdfast.root.createLocks(store, { wait: "forever" });

/** @type {{ rejections: import("./client-plan.ts").RejectionEvent[], lost: any[] }} */
const events = { rejections: [], lost: [] };
locks.on("fence-rejected", ({ guard, resource: about, fence, seen }) => {
  events.rejections.push({ guard, resource: about, fence: String(fence), seen: String(seen) });
});
locks.on("lost", ({ fence, reason }) => events.lost.push({ fence: String(fence), reason }));

switch (role.kind) {
  case "prompt":
    await beOnTime();
    break;
  case "blind":
    await writeBlindly();
    break;
  case "careful":
    await lookFirst(role.look);
    break;
  default:
    throw new Error(`no such role: ${JSON.stringify(role)}`);
}
await locks.close();
await connections.close();
for (const node of nodes) node.disconnect();

async function beOnTime() {
  const lease = await locks.acquire(resource, { ttl: ttlMs, renew: true });
  send({ kind: "holding", fence: String(lease.fence) });
  send({ kind: "wrote", outcomes: await writeAll(holdfast, connections, plan, lease), events });
  // Waits without blocking, unlike the other roles, because this lease must be renewed.
  await once(process.stdin, "data");
  process.stdin.destroy();
  send({ kind: "proved", held: await lease.prove() });
  await lease.release();
}

async function writeBlindly() {
  const lease = await locks.acquire(resource, { ttl: ttlMs });
  send({ kind: "holding", fence: String(lease.fence) });
  send({ kind: "wrote", outcomes: await writeAll(holdfast, connections, plan, lease), events });
  standStill();
  const late = { ...plan, value: `${plan.value}, late` };
  send({ kind: "wrote", outcomes: await writeAll(holdfast, connections, late, lease), events });
}

/** @param {import("./client-plan.ts").Look} look */
async function lookFirst(look) {
  /** @type {import("./client-plan.ts").Saw | undefined} */
  let saw;
  /** @type {unknown} */
  let failure;
  try {
    await locks.using(resource, { ttl: ttlMs }, async (lease) => {
      // Read before the pause, as by a client that passes it on to everything it calls.
      const { signal } = lease;
      send({ kind: "holding", fence: String(lease.fence) });
      standStill();
      try {
        saw = { value: firstLook(look, lease, signal) };
      } catch (error) {
        saw = { threw: described(error) };
        throw error;
      }
      return "the result of the work";
    });
  } catch (error) {
    failure = error;
  }
  if (saw === undefined) throw new Error("the work did not run", { cause: failure });
  send({ kind: "looked", saw, using: described(failure), events });
}

/**
 * @param {import("./client-plan.ts").Look} look
 * @param {Lease} lease
 * @param {AbortSignal} signal
 * @returns {boolean | number}
 */
function firstLook(look, lease, signal) {
  switch (look) {
    case "assertHeld":
      lease.assertHeld();
      return true;
    case "signal.aborted":
      return signal.aborted;
    case "signal.throwIfAborted":
      signal.throwIfAborted();
      return true;
    case "remainingMs":
      return lease.remainingMs();
    default:
      throw new Error(`no such look: ${String(look)}`);
  }
}

/** @param {unknown} error @returns {import("./client-plan.ts").Failure} */
function described(error) {
  if (!(error instanceof holdfast.root.LeaseLostError)) throw error;
  const { name, reason, result } = error;
  return { error: name, reason, result };
}

/**
 * Waits for a byte without a turn of the event loop: no timer and no callback runs between the
 * statement before and the one after, however long the process is stopped here.
 */
function standStill() {
  if (readSync(0, Buffer.alloc(1)) === 0) throw new Error("the parent of this process is gone");
}

/** Has written when it returns, also if the process is stopped next. @param {Message} message */
function send(message) {
  writeSync(1, `${JSON.stringify(message)}\n`);
}
