import { SortedSet } from "./sorted-set.ts";

type Value = string | Map<string, string> | SortedSet;

interface Entry {
  readonly value: Value;
  /** Expiry time by the server's clock. Undefined if the key does not expire. */
  readonly expiresMs: number | undefined;
}

/** Error reply of the server. The message starts with the error code. */
export class ReplyError extends Error {
  override readonly name = "ReplyError";
}

/** Data of one server. Its keys expire by the server's own clock. */
export class Keyspace {
  readonly #nowMs: () => number;
  #entries = new Map<string, Entry>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#find(key) !== undefined);
  }

  get(key: string): string | undefined {
    const value = this.#find(key)?.value;
    if (typeof value === "object") throw wrongType();
    return value;
  }

  /** Returns the text at a key like MGET: undefined if the value is not a text. */
  textOf(key: string): string | undefined {
    const value = this.#find(key)?.value;
    return typeof value === "string" ? value : undefined;
  }

  hash(key: string): Map<string, string> | undefined {
    const value = this.#find(key)?.value;
    if (typeof value === "string" || value instanceof SortedSet) throw wrongType();
    return value;
  }

  sortedSet(key: string): SortedSet | undefined {
    const value = this.#find(key)?.value;
    if (typeof value === "string" || value instanceof Map) throw wrongType();
    return value;
  }

  zadd(key: string, member: string, score: number): void {
    const found = this.sortedSet(key);
    const set = found ?? new SortedSet();
    set.add(member, score);
    if (found === undefined) this.#entries.set(key, { value: set, expiresMs: undefined });
  }

  /** Removes members. Deletes the key if the set has no members left. */
  zrem(key: string, ...members: readonly string[]): void {
    const set = this.sortedSet(key);
    for (const member of members) set?.remove(member);
    if (set?.size === 0) this.#entries.delete(key);
  }

  /** Stores a text. Replaces an existing value of any type. */
  set(key: string, value: string, ttlMs: number | "keep" | undefined): void {
    const expiresMs =
      ttlMs === "keep"
        ? this.#find(key)?.expiresMs
        : ttlMs === undefined
          ? undefined
          : this.#nowMs() + ttlMs;
    this.#entries.set(key, { value, expiresMs });
  }

  hset(key: string, pairs: readonly string[]): number {
    let hash = this.hash(key);
    if (hash === undefined) {
      hash = new Map();
      this.#entries.set(key, { value: hash, expiresMs: undefined });
    }
    let added = 0;
    for (let index = 0; index + 1 < pairs.length; index += 2) {
      const [field = "", value = ""] = pairs.slice(index, index + 2);
      if (!hash.has(field)) added += 1;
      hash.set(field, value);
    }
    return added;
  }

  delete(key: string): number {
    if (this.#find(key) === undefined) return 0;
    this.#entries.delete(key);
    return 1;
  }

  /** Returns the TTL in ms, -2 if the key does not exist, or -1 if it does not expire. */
  pttl(key: string): number {
    const entry = this.#find(key);
    if (entry === undefined) return -2;
    return entry.expiresMs === undefined ? -1 : Math.max(0, entry.expiresMs - this.#nowMs());
  }

  pexpire(key: string, ttlMs: number): number {
    const entry = this.#find(key);
    if (entry === undefined) return 0;
    if (ttlMs <= 0) this.#entries.delete(key);
    else this.#entries.set(key, { value: entry.value, expiresMs: this.#nowMs() + ttlMs });
    return 1;
  }

  clear(): void {
    this.#entries = new Map();
  }

  /** Returns a copy that later writes do not change, like a snapshot on disk. */
  snapshot(): ReadonlyMap<string, Entry> {
    const copy = new Map<string, Entry>();
    for (const [key, { value, expiresMs }] of this.#entries) {
      copy.set(key, { value: copyOf(value), expiresMs });
    }
    return copy;
  }

  load(snapshot: ReadonlyMap<string, Entry>): void {
    this.#entries = new Map();
    for (const [key, { value, expiresMs }] of snapshot) {
      this.#entries.set(key, { value: copyOf(value), expiresMs });
    }
  }

  #find(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresMs === undefined || this.#nowMs() <= entry.expiresMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}

export type Snapshot = ReturnType<Keyspace["snapshot"]>;

function copyOf(value: Value): Value {
  if (typeof value === "string") return value;
  return value instanceof SortedSet ? value.copy() : new Map(value);
}

function wrongType(): ReplyError {
  return new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
}
