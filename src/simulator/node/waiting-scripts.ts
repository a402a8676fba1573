import type { Queues } from "./queues.ts";
import type { PlaceAsked, ScriptContext } from "./script-context.ts";

/** Lock keys and, behind them, as many queues. */
export interface Locks {
  readonly locks: readonly string[];
  readonly queues: readonly string[];
}

export function locksOf(keys: readonly string[]): Locks {
  return { locks: keys.slice(0, keys.length / 2), queues: keys.slice(keys.length / 2) };
}

/** How long the first of those who come before has; undefined where the lock is for us. */
export function firstOfOthers(
  queues: Queues,
  { locks, queues: names }: Locks,
  place: PlaceAsked | undefined,
): number | undefined {
  for (const [index, lock] of locks.entries()) {
    const queue = queues.at(names[index] ?? "", lock);
    const head = queues.headBefore(queue, place?.ticket, place?.id ?? "");
    if (head !== undefined) return queues.leftMs(head);
  }
  return undefined;
}

/**
 * Refused: takes a place in the queues that keep it waiting, and leaves the rest. Returns the
 * fewest waiters that stand in front of it.
 */
export function waitInQueues(
  { data }: ScriptContext,
  queues: Queues,
  { locks, queues: names }: Locks,
  place: PlaceAsked | undefined,
): string {
  if (place === undefined) return "-";
  const { ticket, id } = place;
  let rank = Infinity;
  for (const [index, lock] of locks.entries()) {
    const isHeld = data.textOf(lock) !== undefined;
    const queue = queues.at(names[index] ?? "", lock);
    if (isHeld || queues.headBefore(queue, ticket, id) !== undefined) {
      rank = Math.min(rank, queues.stand(queue, ticket, id));
    } else {
      queues.leave(queue, id);
    }
  }
  return String(rank);
}

export function claimPlaces(
  queues: Queues,
  { locks, queues: names }: Locks,
  place: PlaceAsked | undefined,
): void {
  if (place === undefined) return;
  for (const [index, lock] of locks.entries()) {
    queues.claimed(queues.at(names[index] ?? "", lock), place.id);
  }
}

/** Deletes what is the owner's, and gives up or keeps a place; the queues are finished later. */
export function releaseIn(
  { data, args }: ScriptContext,
  queues: Queues,
  { locks, queues: names }: Locks,
): string {
  const [whole = "", place = ""] = args;
  const owner = whole.replace(/\|\d+$/, "");
  let deleted = 0;
  for (const [index, lock] of locks.entries()) {
    const value = data.textOf(lock);
    const isOurs = value === whole || value === owner || value?.startsWith(`${owner}|`) === true;
    if (isOurs) deleted += data.delete(lock);
    const queue = queues.at(names[index] ?? "", lock);
    if (place.startsWith("-")) queues.leave(queue, place.slice(1));
    if (place.startsWith("=")) queue.keeper = place.slice(1);
  }
  return `R ${deleted} ${locks.length}`;
}
