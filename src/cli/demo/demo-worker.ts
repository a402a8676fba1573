/**
 * One worker of the demo, in its own process. In a loop it acquires the lock, reads the balance of
 * the account, pauses, and writes the balance plus a deposit. It sends its events to the parent,
 * and ends when the parent ends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  createLocks,
  isHoldfastError,
  type Lease,
  LeaseLostError,
  type Locks,
} from "../../index.ts";
import { throwIfFenceRejected, withFence } from "../../fencing/http.ts";
import { workerHeader } from "./bank.ts";
import { openDemoStore } from "./demo-store.ts";
import { type AccountName, type Answer, machineMs, type WorkerEvent } from "./events.ts";
import { type Order, planVariable, type WorkerPlan } from "./crew.ts";

const plan = JSON.parse(process.env[planVariable] ?? "{}") as WorkerPlan;
const accounts: readonly AccountName[] = ["open", "guarded"];
const stop = new AbortController();
let frozenPid: number | undefined;
let beganMs: number | undefined;
let lastSent: Promise<void> = Promise.resolve();

const began = new Promise<void>((resolve) => {
  process.on("message", (order: Order) => {
    if (order.kind === "stop") stop.abort();
    else if (order.kind === "frozen") frozenPid = order.pid;
    else {
      beganMs = order.beganMs;
      resolve();
    }
  });
});

// The parent has ended and cannot resume a frozen worker, so that worker is killed as well.
process.on("disconnect", () => {
  if (frozenPid !== undefined) process.kill(frozenPid, "SIGKILL");
  process.exit(1);
});

try {
  await work();
} catch (error) {
  send({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
}
// The last event must be sent before the channel closes.
await lastSent;
process.removeAllListeners("disconnect");
process.disconnect();

async function work(): Promise<void> {
  const { store, close } = await openDemoStore(plan.store);
  const locks = createLocks(store, { ttl: plan.ttlMs, label: `${plan.name} of the demo` });
  locks.on("renewed", ({ fence, remainingMs }) => {
    send({ kind: "renewed", fence: String(fence), expiresMs: nowMs() + remainingMs });
  });
  send({ kind: "ready", pid: process.pid });
  await began;
  try {
    while (!stop.signal.aborted) await takeTurn(locks);
  } finally {
    await locks.close();
    close();
  }
}

async function takeTurn(locks: Locks): Promise<void> {
  let fence = "";
  const { signal } = stop;
  try {
    await locks.using(plan.resource, { wait: plan.waitMs, signal }, async (lease) => {
      fence = String(lease.fence);
      const expiresMs = nowMs() + lease.remainingMs();
      send({ kind: "acquired", fence, expiresMs });
      await deposit(lease);
    });
    send({ kind: "released", fence });
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof LeaseLostError)) throw error;
    send({ kind: "lost", fence, reason: error.reason });
  }
  // The pause is long enough for another worker to acquire the lock.
  await sleep(plan.restMs);
}

async function deposit(lease: Lease): Promise<void> {
  const fence = String(lease.fence);
  const balances = await Promise.all(accounts.map((account) => read(lease, account)));
  send({ kind: "thinking", fence });
  await sleep(plan.thinkMs);
  lease.assertHeld();
  send({ kind: "checked", fence });
  // Between the last check and the write a process can stop at any time: garbage collection, a page
  // fault, a suspended machine. This pause makes the gap long enough for the director to use.
  await sleep(plan.sendMs);
  for (const [index, account] of accounts.entries()) {
    const how = await write(lease, account, (balances[index] ?? 0) + plan.deposit);
    send({ kind: "replied", fence, account, how });
  }
}

/**
 * Reads the balance. The request carries the fence. After it, the guard refuses a late write of an
 * earlier holder, even before this worker writes.
 */
async function read(lease: Lease, account: AccountName): Promise<number> {
  const response = await fetch(`${plan.bank}/${account}`, withFence(lease));
  await throwIfFenceRejected(response, lease);
  return Number(await response.text());
}

async function write(lease: Lease, account: AccountName, balance: number): Promise<Answer> {
  const init = { method: "PUT", body: String(balance), headers: { [workerHeader]: plan.name } };
  const response = await fetch(`${plan.bank}/${account}`, withFence(lease, init));
  try {
    await throwIfFenceRejected(response, lease);
  } catch (error) {
    if (!isHoldfastError(error, "FENCE_REJECTED")) throw error;
    return "refused";
  }
  const text = await response.text();
  if (!response.ok) throw new Error(`the bank answered ${response.status}: ${text}`);
  return "accepted";
}

function nowMs(): number {
  return beganMs === undefined ? 0 : machineMs() - beganMs;
}

function send(event: WorkerEvent): void {
  const message = { ...event, worker: plan.name, atMs: nowMs() };
  // `send` fails only if the parent has ended, and then this process ends as well.
  lastSent = new Promise((resolve) => process.send?.(message, () => resolve()));
}
