import type { LmdbDatabase } from "./lmdb-package.ts";
import type { Machine, ProcessIdentity } from "./machine.ts";

/**
 * Address of a wait (a call that waits for a lock): the mailbox of its process, and the number of
 * the wait in that process.
 */
export interface Address {
  readonly mailbox: string;
  readonly wait: number;
}

/** Queue entries of one waiting call, one for each of its resources. */
export interface Place {
  readonly ticket: string;
  readonly keys: readonly string[];
}

interface Ticket extends Address {
  readonly keys: readonly string[];
  readonly process: ProcessIdentity;
}

interface Counts {
  readonly given: number;
  readonly waiting: number;
}

const countsKey = "m/tickets";
const ticketPrefix = "t/";
const placePrefix = "w/";

/**
 * Limit for the queue entries that are examined for one freed resource. Waits behind them are not
 * notified, and depend on their attempts at intervals.
 */
const lookedAtMax = 64;
/** Limit for the number of waiters that is reported. */
const countedMax = 1_000;
/**
 * Number of digits of a ticket. Leading zeros make tickets sort as texts in the order of numbers.
 */
const ticketDigits = 16;

/**
 * Queue of waits in the order of arrival. The order only decides which wait is notified first: a
 * wait that is stuck or killed blocks no lock. Every method runs inside a write transaction. `keys`
 * are the database keys of resources, as `keyOf` returns them.
 */
export class WaitQueue {
  readonly #database: LmdbDatabase;
  readonly #machine: Machine;

  constructor(database: LmdbDatabase, machine: Machine) {
    this.#database = database;
    this.#machine = machine;
  }

  /**
   * Adds a wait at the end of the queue. A wait that is in the queue keeps its place, unless its
   * mailbox has changed.
   */
  join(place: Place | undefined, keys: readonly string[], address: Address): Place {
    if (place !== undefined) {
      if (this.#ticket(place.ticket)?.mailbox === address.mailbox) return place;
      this.leave(place);
    }
    const { given, waiting } = this.#counts();
    this.#count({ given: given + 1, waiting: waiting + 1 });
    const ticket = String(given + 1).padStart(ticketDigits, "0");
    const stored: Ticket = { ...address, keys, process: this.#machine.self };
    this.#database.putSync(ticketPrefix + ticket, JSON.stringify(stored));
    for (const key of keys) this.#database.putSync(placeKey(key, ticket), "");
    return { ticket, keys };
  }

  leave({ ticket, keys }: Place): void {
    const { given, waiting } = this.#counts();
    const present = this.#database.removeSync(ticketPrefix + ticket);
    if (present) this.#count({ given, waiting: waiting - 1 });
    for (const key of keys) this.#database.removeSync(placeKey(key, ticket));
  }

  /**
   * Returns the waits to notify when `keys` may have become free: for each key the first wait whose
   * resources are all free. Returns only one wait per key, because only one can have the lock. The
   * next wait is notified when that one releases the lock or leaves the queue.
   */
  next(keys: readonly string[], isFree: (key: string) => boolean): readonly Address[] {
    const notified = new Map<string, Address>();
    // perf: usually no call waits for a lock, and then this check costs only one read.
    if (this.#counts().waiting === 0) return [];
    for (const key of keys) {
      const found = isFree(key) ? this.#firstFor(key, isFree) : undefined;
      if (found !== undefined) notified.set(found.ticket, found.address);
    }
    return [...notified.values()];
  }

  /** Returns the number of waits for a key, without those of dead processes. Changes nothing. */
  waitersOf(key: string): number {
    if (this.#counts().waiting === 0) return 0;
    const start = placeKey(key, "");
    const range = { start, end: `${start}~`, limit: countedMax };
    const tickets = [...this.#database.getRange(range)].map((item) => item.key.slice(start.length));
    return tickets.filter((ticket) => {
      const stored = this.#ticket(ticket);
      return stored !== undefined && !this.#machine.isDead(stored.process);
    }).length;
  }

  #firstFor(
    key: string,
    isFree: (key: string) => boolean,
  ): { readonly ticket: string; readonly address: Address } | undefined {
    const start = placeKey(key, "");
    const range = { start, end: `${start}~`, limit: lookedAtMax };
    // All tickets are read before the first is removed, because a change would invalidate the
    // range.
    const tickets = [...this.#database.getRange(range)].map((item) => item.key.slice(start.length));
    for (const ticket of tickets) {
      const stored = this.#ticket(ticket);
      if (stored === undefined) this.#database.removeSync(placeKey(key, ticket));
      else if (this.#machine.isDead(stored.process)) this.leave({ ticket, keys: stored.keys });
      else if (stored.keys.every(isFree)) return { ticket, address: stored };
    }
    return undefined;
  }

  /** Returns the number of tickets given so far, and the number of tickets in the queue. */
  #counts(): Counts {
    const [given = 0, waiting = 0] = (this.#database.get(countsKey) ?? "0 0")
      .split(" ")
      .map(Number);
    return { given, waiting };
  }

  #count({ given, waiting }: Counts): void {
    this.#database.putSync(countsKey, `${given} ${waiting}`);
  }

  #ticket(ticket: string): Ticket | undefined {
    const text = this.#database.get(ticketPrefix + ticket);
    if (text === undefined) return undefined;
    return JSON.parse(text) as Ticket;
  }
}

function placeKey(key: string, ticket: string): string {
  return `${placePrefix}${key}/${ticket}`;
}
