import { setAll, shown } from "./lock-values.ts";
import type { Queues } from "./queues.ts";
import {
  ownerAndFence,
  proposalMaxOf,
  type PlaceAsked,
  type ScriptContext,
} from "./script-context.ts";

const fenceMax = 9_007_199_254_740_991;

export interface ScriptOperation {
  /** A or W (acquire), T (touch), R or P (release). Defined in `_list.lua`. */
  readonly code: string;
  readonly ttlMs: number;
  readonly locks: readonly string[];
  readonly queues: readonly string[];
  /** Names of the fence counters: fields of the node record, or keys in a Cluster. */
  readonly counters: readonly string[];
  /** Owner, for an acquire. For a touch or release, the value that the client stored last. */
  readonly value: string;
  /** Fence that the client suggests. */
  readonly proposal: string;
  readonly place: PlaceAsked | undefined;
  /** Queue entry that a release deletes ("-id") or keeps ("=id"), or an empty text. */
  readonly left: string;
}

/** Server state and limits that a script passes to `run`. */
export interface View {
  readonly context: ScriptContext;
  readonly queues: Queues;
  /** True if a lock's value is "owner|fence". Without fences it is only the owner. */
  readonly fences: boolean;
  readonly refusal: string | undefined;
  readonly ttlMaxMs: number;
  readonly floor: number;
  readCounter(name: string): number;
  raiseCounters(names: readonly string[], fence: string, isBehind: boolean): void;
}

/**
 * Runs one operation and returns its line of the reply, like `_engine.lua`. A differential test
 * compares the two.
 */
export function run(operation: ScriptOperation, view: View): string {
  if (operation.code === "R" || operation.code === "P") return release(operation, view);
  const refused = view.refusal ?? tooLong(operation, view);
  if (refused !== undefined) return refused;
  return operation.code === "T" ? touch(operation, view) : acquire(operation, view);
}

function tooLong({ ttlMs }: ScriptOperation, { ttlMaxMs }: View): string | undefined {
  return ttlMs > ttlMaxMs ? `X MAXTTL ${ttlMaxMs}` : undefined;
}

function acquire(operation: ScriptOperation, view: View): string {
  const { locks, counters, value: owner, proposal, ttlMs } = operation;
  const { data } = view.context;
  let mine = 0;
  let found: string | undefined;
  for (const key of locks) {
    const value = data.textOf(key);
    if (value === undefined) continue;
    const holder = split(value, view);
    if (holder.owner !== owner || (view.fences && holder.fence === undefined)) {
      return `H ${data.pttl(key)} ${wait(operation, view)} ${shown(value)}`;
    }
    mine += 1;
    found = holder.fence;
  }
  const granted = (fence: string): string => (fence === proposal ? "G" : `G ${fence}`);
  // The owner already holds all locks, so this acquire is a repeat. It does not extend the TTL.
  if (mine === locks.length) return granted(found ?? proposal);
  if (mine > 0) return `X PARTIAL ${mine}`;
  const leftMs = othersTurn(operation, view);
  if (leftMs !== undefined) return `Q ${leftMs} ${wait(operation, view)}`;
  if (!view.fences) return setAll(data, locks, owner, ttlMs) ?? "G";
  const c = nextFence(operation, view);
  if (c > fenceMax) return `X FENCE ${c}`;
  const fence = String(c);
  view.raiseCounters(counters, fence, true);
  return setAll(data, locks, `${owner}|${fence}`, ttlMs) ?? granted(fence);
}

function nextFence({ proposal, counters, place }: ScriptOperation, view: View): number {
  const block = place?.block ?? 1;
  const proposed = Math.min(Number(proposal), proposalMaxOf(view.context));
  const least = counters.map((name) => view.readCounter(name) + block);
  return Math.max(proposed, view.floor + block, ...least);
}

/** Confirms a lease. Stores its fence where a smaller one is stored, and prolongs its TTL. */
function touch(operation: ScriptOperation, view: View): string {
  const { locks, counters, value: whole, ttlMs } = operation;
  const { data } = view.context;
  const { owner, fence = "" } = split(whole, view);
  let isBehind = false;
  for (const key of locks) {
    const value = data.textOf(key);
    if (value === undefined) return "N ABSENT";
    if (value === whole) continue;
    const holder = split(value, view);
    if (holder.owner !== owner || holder.fence === undefined) return "N OTHER";
    if (Number(holder.fence) > Number(fence)) return "N NEWER";
    isBehind = true;
  }
  if (view.fences) view.raiseCounters(counters, fence, isBehind);
  for (const key of locks) {
    if (isBehind) data.set(key, whole, "keep");
    if (ttlMs > 0 && data.pttl(key) < ttlMs) data.pexpire(key, ttlMs);
  }
  return "K";
}

/** Deletes the locks of the owner. `left` says if its waiter stays in the queues. */
function release({ locks, queues, value: whole, left }: ScriptOperation, view: View): string {
  const { data } = view.context;
  const owner = whole.replace(/\|\d+$/, "");
  let deleted = 0;
  for (const [index, lock] of locks.entries()) {
    const value = data.textOf(lock);
    const isOurs = value === whole || value === owner || value?.startsWith(`${owner}|`) === true;
    if (isOurs) deleted += data.delete(lock);
    const queue = view.queues.at(queues[index] ?? "", lock);
    if (left.startsWith("-")) view.queues.leave(queue, left.slice(1));
    if (left.startsWith("=")) queue.keeper = left.slice(1);
  }
  return `R ${deleted} ${locks.length}`;
}

function split(value: string, view: View): { owner: string; fence: string | undefined } {
  return view.fences ? ownerAndFence(value) : { owner: value, fence: undefined };
}

/**
 * Returns for how many ms another waiter still comes first. If no waiter comes first, returns
 * undefined and lets the caller's own queue entries expire soon.
 */
function othersTurn({ locks, queues, place }: ScriptOperation, view: View): number | undefined {
  for (const [index, lock] of locks.entries()) {
    const queue = view.queues.at(queues[index] ?? "", lock);
    const head = view.queues.headBefore(queue, place?.ticket, place?.id ?? "");
    if (head !== undefined) return view.queues.leftMs(head);
  }
  if (place === undefined) return undefined;
  for (const [index, lock] of locks.entries()) {
    view.queues.claimed(view.queues.at(queues[index] ?? "", lock), place.id);
  }
  return undefined;
}

/**
 * Called when an acquire must wait. Adds its entry to each queue in which it has to wait and
 * removes it from the others. Returns the smallest number of waiters before it in those queues.
 */
function wait({ locks, queues, place }: ScriptOperation, view: View): string {
  if (place === undefined) return "-";
  const { ticket, id } = place;
  let rank = Infinity;
  for (const [index, lock] of locks.entries()) {
    const isHeld = view.context.data.textOf(lock) !== undefined;
    const queue = view.queues.at(queues[index] ?? "", lock);
    if (isHeld || view.queues.headBefore(queue, ticket, id) !== undefined) {
      rank = Math.min(rank, view.queues.stand(queue, ticket, id));
    } else {
      view.queues.leave(queue, id);
    }
  }
  return String(rank);
}
