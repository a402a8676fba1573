import type { Script } from "./scripts/generated.ts";

/** One operation as the batch scripts take it. */
export interface BatchPart {
  /**
   * A acquires, W acquires with a place in the queue, T touches, R releases, P releases and gives
   * up or keeps a place.
   */
  readonly code: "A" | "W" | "T" | "R" | "P";
  readonly keys: readonly string[];
  /** Names the queue of a key; left out for a touch, which neither grants nor frees. */
  readonly queueOf?: ((key: string) => string) | undefined;
  /** Owner first; the TTL second, but for a release; then what the dialect's script needs. */
  readonly args: readonly string[];
}

/** Which script runs several operations in one call, and what comes before them. */
export interface Batching {
  readonly script: Script;
  /** The node record, where the dialect has one. */
  readonly recordKey: string | undefined;
  /** Told before the operations, after the verify flag, where there is one. */
  readonly head: readonly string[];
  /** Each call looks which process it runs in. */
  readonly strict: boolean;
}

/** Where there is a record, a stamp comes before the replies: which process answered, and when. */
export function firstReplyAt({ recordKey }: Batching): number {
  return recordKey === undefined ? 0 : 1;
}

/** Beyond this a batch holds the server up, and everybody else's commands with it. */
export const batchWeightMax = 128;
/** As many acquires or releases as fit in a batch take up to four keys each. */
const usualWeight = 4;
const touchWeight = 2;

/** What an operation takes of a batch: renewals, which come in great numbers, are the cheapest. */
export function weightOf(part: BatchPart | undefined): number {
  if (part === undefined) return Infinity;
  if (part.code === "T") return touchWeight * part.keys.length;
  return Math.max(usualWeight, part.keys.length);
}

export interface BatchCall {
  readonly key: string;
  first(verify: boolean): readonly string[];
  /** The text of the script itself, for a server that lacks it. */
  whole(): readonly string[];
}

/** Many operations in one script call; each keeps its own verdict. */
export function batchCall(batching: Batching, parts: readonly BatchPart[]): BatchCall {
  const { script, recordKey, strict } = batching;
  const command = (name: string, text: string, verify: boolean): string[] => {
    const built = [name, text, ""];
    if (recordKey !== undefined) built.push(recordKey);
    for (const { keys } of parts) for (const key of keys) built.push(key);
    const lockCount = built.length - (recordKey === undefined ? 3 : 4);
    for (const { keys, queueOf } of parts) {
      if (queueOf !== undefined) for (const key of keys) built.push(queueOf(key));
    }
    built[2] = String(built.length - 3);
    if (recordKey !== undefined) built.push(verify || strict ? "1" : "0");
    for (const arg of batching.head) built.push(arg);
    built.push(String(lockCount));
    addRuns(built, parts);
    return built;
  };
  const built: [string[]?, string[]?] = [];
  return {
    key: recordKey ?? parts[0]?.keys[0] ?? "",
    first: (verify) => (built[verify ? 1 : 0] ??= command("EVALSHA", script.sha, verify)),
    whole: () => command("EVAL", script.source, true),
  };
}

/** Operations of one kind that follow one another share what they have in common. */
function addRuns(command: string[], parts: readonly BatchPart[]): void {
  let [code, lockCount, ttl] = ["", 0, ""];
  let count = 0;
  let countAt = 0;
  for (const part of parts) {
    const { args } = part;
    const isRelease = part.code === "R" || part.code === "P";
    const ownTtl = isRelease ? "0" : (args[1] ?? "0");
    if (part.code !== code || part.keys.length !== lockCount || ownTtl !== ttl) {
      if (count > 0) command[countAt] = String(count);
      [code, lockCount, ttl] = [part.code, part.keys.length, ownTtl];
      count = 0;
      countAt = command.length + 1;
      command.push(code, "", String(lockCount), ttl);
    }
    count += 1;
    for (let at = 0; at < args.length; at += 1) {
      if (isRelease || at !== 1) command.push(args[at] ?? "");
    }
  }
  if (count > 0) command[countAt] = String(count);
}

/**
 * The nodes of a quorum mostly have the very same operations to send in one turn: what was put
 * together for one of them serves the others.
 */
export class Batches {
  readonly batching: Batching;
  #parts: readonly BatchPart[] = [];
  #call: BatchCall | undefined;

  constructor(batching: Batching) {
    this.batching = batching;
  }

  callOf(parts: readonly BatchPart[]): BatchCall {
    if (this.#call === undefined || !isSame(parts, this.#parts)) {
      this.#parts = parts;
      this.#call = batchCall(this.batching, parts);
    }
    return this.#call;
  }
}

function isSame(some: readonly BatchPart[], others: readonly BatchPart[]): boolean {
  if (some.length !== others.length) return false;
  for (let index = 0; index < some.length; index += 1) {
    if (some[index] !== others[index]) return false;
  }
  return true;
}
