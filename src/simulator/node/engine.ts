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
  /** A, W, T, R or P, as `_list.lua` has them. */
  readonly code: string;
  readonly ttlMs: number;
  readonly locks: readonly string[];
  readonly queues: readonly string[];
  /** Names of the locks' counters, however the script keeps them. */
  readonly counters: readonly string[];
  /** Of an acquire: its owner. Of the others: the value that the owner left. */
  readonly value: string;
  readonly proposal: string;
  readonly place: PlaceAsked | undefined;
  /** Entry that a release gives up ("-id") or keeps ("=id"). */
  readonly left: string;
}

/** The server as a script presents it to the rules. */
export interface View {
  readonly context: ScriptContext;
  readonly queues: Queues;
  /** A lock's value is "owner|fence", otherwise the owner. */
  readonly fences: boolean;
  readonly refusal: string | undefined;
  readonly ttlMaxMs: number;
  readonly floor: number;
  readCounter(name: string): number;
  raiseCounters(names: readonly string[], fence: string, isBehind: boolean): void;
}

/** The same rules as `_engine.lua`; a differential test compares the two. */
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
  // A repeat of our own acquire. Its time is not refreshed.
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

/** Raises, extends or proves. */
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

/** Deletes what is the owner's, and gives up or keeps an entry in the queues. */
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

/** Returns for how long another waiter comes first; undefined if it is our turn, which is noted. */
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
 * Refused: enters the queues that keep it waiting, and leaves the rest. Returns the fewest waiters
 * that come before it.
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
