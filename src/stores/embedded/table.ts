import { createHash } from "node:crypto";
import { StoreError } from "../../core/errors.ts";
import { nextClockFence } from "../../core/time/clock-fence.ts";
import { damaged } from "./database-file.ts";
import { fencesPerMark, readMark, writeMark } from "./fence-mark.ts";
import type { LmdbDatabase } from "./lmdb-package.ts";
import type { Machine, ProcessIdentity } from "./machine.ts";
import { type Address, type Place, WaitQueue } from "./wait-queue.ts";

/** One held resource, as the database stores it. */
export interface Entry {
  readonly resource: string;
  readonly owner: string;
  readonly fence: bigint;
  /** Expiry, as a time of the clock that all processes of the machine share. */
  readonly expiresMs: number;
  /** Time from the last write to `expiresMs`. */
  readonly ttlMs: number;
  readonly holder: ProcessIdentity;
}

const format = "1";
const keys = { format: "m/format", fence: "m/fence", reserved: "m/reserved", time: "m/time" };
const entryPrefix = "r/";
const entriesEnd = "r0";

/** Number of grants of this process after which it removes expired entries. */
const grantsPerSweep = 1_000;

/** Limit for entries that are read at once. Other processes cannot write while they are read. */
const sweepMax = 10_000;

/** Limit for the difference between readings of the machine's clock in two processes. */
const clockToleranceMs = 1_000;

/**
 * Writes the first values into a new database. Its fences continue after those of earlier boots.
 */
export function fillNew(database: LmdbDatabase, directory: string, machine: Machine): void {
  const mark = String(readMark(directory));
  database.putSync(keys.format, format);
  database.putSync(keys.fence, mark);
  database.putSync(keys.reserved, mark);
  database.putSync(keys.time, machine.timeNamespace);
}

/** Locks of one directory. Every method runs inside a write transaction. */
export class Table {
  readonly #database: LmdbDatabase;
  readonly directory: string;
  readonly #machine: Machine;
  /** Queue of the calls that wait for these locks. */
  readonly queue: WaitQueue;
  /** Number of grants of this process since it last removed expired entries. */
  #grants = 0;
  /** Keys of the resources that may have become free in this transaction. */
  readonly #freed = new Set<string>();

  constructor(database: LmdbDatabase, directory: string, machine: Machine) {
    this.queue = new WaitQueue(database, machine);
    this.#database = database;
    this.directory = directory;
    this.#machine = machine;
  }

  /** Throws if the database has another format, or another time namespace than this process. */
  check(): void {
    const found = this.#database.get(keys.format);
    if (found !== format) {
      throw new StoreError(
        `the lock database in ${this.directory} has the format ${found}, not ${format}: ` +
          "processes of different versions must not share a directory",
      );
    }
    if (this.#database.get(keys.time) !== this.#machine.timeNamespace) {
      throw new StoreError(
        `the locks in ${this.directory} belong to another time namespace: this process does not ` +
          "share a monotonic clock with the others, and could not know when their locks expire",
      );
    }
  }

  /**
   * Returns the entry that holds `resource`. Ignores expired entries and those of dead processes.
   */
  find(resource: string, nowMs: number): Entry | undefined {
    return this.#findKey(keyOf(resource), nowMs);
  }

  #findKey(key: string, nowMs: number): Entry | undefined {
    const text = this.#database.get(key);
    const entry = text === undefined ? undefined : decode(text, this.directory);
    return entry === undefined || this.#isOver(entry, nowMs) ? undefined : entry;
  }

  /** Returns the entries of all resources that are held now. */
  all(nowMs: number): readonly Entry[] {
    const found: Entry[] = [];
    let start = entryPrefix;
    for (;;) {
      const page = [...this.#database.getRange({ start, end: entriesEnd, limit: sweepMax })];
      for (const { value } of page) {
        const entry = decode(value, this.directory);
        if (!this.#isOver(entry, nowMs)) found.push(entry);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < sweepMax) return found;
      // This is the smallest key after the last key of the page.
      start = `${last.key}\u0000`;
    }
  }

  /** Returns the number of calls that wait for `resource`. */
  waitersOf(resource: string): number {
    return this.queue.waitersOf(keyOf(resource));
  }

  put(entry: Omit<Entry, "holder">): void {
    this.#database.putSync(keyOf(entry.resource), encode({ ...entry, holder: this.#machine.self }));
  }

  /** Removes the entry of `owner`, even if it has expired. */
  remove(resource: string, owner: string): void {
    const key = keyOf(resource);
    const text = this.#database.get(key);
    if (text === undefined || decode(text, this.directory).owner !== owner) return;
    this.#database.removeSync(key);
    this.#freed.add(key);
  }

  /**
   * Removes a wait from the queue. Its keys count as freed: if this wait was notified last, the
   * next wait in the queue must be notified instead.
   */
  leaveQueue(place: Place): void {
    this.queue.leave(place);
    for (const key of place.keys) this.#freed.add(key);
  }

  /**
   * Returns the addresses of the waits to notify about freed keys. Must be the last step of a
   * transaction.
   */
  lettersForFreed(nowMs: number): readonly Address[] {
    if (this.#freed.size === 0) return [];
    const keys = [...this.#freed];
    this.#freed.clear();
    return this.queue.next(keys, (key) => this.#findKey(key, nowMs) === undefined);
  }

  /**
   * Returns a fence greater than all earlier fences of the directory, in this boot and in earlier
   * ones. It follows the wall clock, as the fences of Redis do.
   */
  nextFence(nowMs: number, wallMs: number): bigint {
    let fence = nextClockFence(this.#number(keys.fence), wallMs);
    this.#grants += 1;
    if (fence > this.#number(keys.reserved)) {
      const mark = readMark(this.directory);
      if (mark >= fence) fence = mark + 1n;
      writeMark(this.directory, fence + fencesPerMark);
      this.#database.putSync(keys.reserved, String(fence + fencesPerMark));
      this.#grants = grantsPerSweep;
    }
    if (this.#grants >= grantsPerSweep) this.#sweep(nowMs);
    this.#database.putSync(keys.fence, String(fence));
    return fence;
  }

  /**
   * Skips all fences up to the mark: the database of another boot may have granted them since this
   * database was last used.
   */
  skipToMark(): void {
    const mark = readMark(this.directory);
    const reserved = this.#number(keys.reserved);
    const fence = String(mark > reserved ? mark : reserved);
    this.#database.putSync(keys.fence, fence);
    this.#database.putSync(keys.reserved, fence);
  }

  /**
   * Removes expired entries. Otherwise entries of resources that are never locked again would stay
   * for ever.
   */
  #sweep(nowMs: number): void {
    this.#grants = 0;
    const range = { start: entryPrefix, end: entriesEnd, limit: sweepMax };
    const over = [...this.#database.getRange(range)].filter(({ value }) =>
      this.#isOver(decode(value, this.directory), nowMs),
    );
    for (const { key } of over) this.#database.removeSync(key);
  }

  #isOver({ expiresMs, ttlMs, holder }: Entry, nowMs: number): boolean {
    if (expiresMs <= nowMs) return true;
    // Without a boot id, an expiry that is too late for any lease of this boot comes from an
    // earlier boot.
    const ofThisBoot =
      this.#machine.bootId !== undefined || expiresMs - nowMs <= ttlMs + clockToleranceMs;
    return !ofThisBoot || this.#machine.isDead(holder);
  }

  #number(key: string): bigint {
    const text = this.#database.get(key);
    if (text === undefined || !/^\d+$/.test(text))
      throw damaged(this.directory, `${key} is ${text}`);
    return BigInt(text);
  }
}

/**
 * Returns the database key of a resource. It contains a hash, because a name may be longer than
 * LMDB's keys.
 */
export function keyOf(resource: string): string {
  return entryPrefix + createHash("sha256").update(resource).digest("base64url");
}

function encode(entry: Entry): string {
  return JSON.stringify({ ...entry, fence: String(entry.fence) });
}

function decode(text: string, directory: string): Entry {
  try {
    const stored = JSON.parse(text) as Omit<Entry, "fence"> & { readonly fence: string };
    return { ...stored, fence: BigInt(stored.fence) };
  } catch (cause) {
    throw damaged(directory, "an entry in it cannot be read", cause);
  }
}
