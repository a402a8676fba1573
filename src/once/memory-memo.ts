import { type FenceRejectedError, InvalidOptionError, StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { rejection, subjectOf, type Fenced } from "../fencing/guard.ts";
import { ownClock, plausibleFence } from "../fencing/plausible-fence.ts";
import { wallMs } from "../runtime/real-time.ts";
import { fenceKeptMs, type Memo, type MemoRecord } from "./memo.ts";

export interface MemoryMemoOptions {
  /** Largest number of records. @default 10_000 */
  readonly maxRecords?: number;
  /** Returns the time in ms since 1970, for tests. @default the clock of this machine */
  readonly nowMs?: () => number;
}

interface Entry extends MemoRecord {
  readonly untilMs: number;
}

const maxRecordsDefault = 10_000;

/**
 * Returns a memo in the memory of this process, for tests and for a single process: a restart
 * forgets everything. A new key is refused with StoreError if `maxRecords` are kept, because to
 * forget one of them would run its work again.
 */
export function memoryMemo(options: MemoryMemoOptions = {}): Memo {
  knownOptions("options", options, ["maxRecords", "nowMs"]);
  const { maxRecords = maxRecordsDefault, nowMs = wallMs } = options;
  if (!Number.isSafeInteger(maxRecords) || maxRecords < 1) {
    throw new InvalidOptionError("maxRecords", "a whole number of at least 1", maxRecords);
  }
  return new MemoryMemo(maxRecords, nowMs);
}

class MemoryMemo implements Memo {
  readonly #entries = new Map<string, Entry>();
  readonly #maxRecords: number;
  readonly #nowMs: () => number;

  constructor(maxRecords: number, nowMs: () => number) {
    this.#maxRecords = maxRecords;
    this.#nowMs = nowMs;
  }

  read(key: string): Promise<MemoRecord | undefined> {
    return Promise.resolve(this.#live(key));
  }

  async write(
    lease: Fenced,
    key: string,
    { state, text }: Pick<MemoRecord, "state" | "text">,
    keepMs: number,
  ): Promise<MemoRecord | undefined> {
    const resource = subjectOf(lease, undefined, key);
    const fence = await plausibleFence(lease, resource, undefined, ownClock);
    const seen = this.#entries.get(key)?.fence;
    if (seen !== undefined && seen > fence) throw this.#rejection(lease, resource, fence, seen);
    const live = this.#live(key);
    if (live?.state === "done") return live;
    if (seen === undefined) this.#makeRoom(key);
    this.#entries.set(key, { state, text, fence, untilMs: this.#nowMs() + keepMs });
    return undefined;
  }

  #rejection(lease: Fenced, resource: string, fence: bigint, seen: bigint): FenceRejectedError {
    return rejection(lease, { resource, fence, seen, guard: "memory" });
  }

  /** Returns the record of the key, unless its time is over. */
  #live(key: string): MemoRecord | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.untilMs <= this.#nowMs()) return undefined;
    const { state, fence, text } = entry;
    return { state, fence, text };
  }

  /** Forgets records whose fences are no longer needed. Throws if there is still no room. */
  #makeRoom(key: string): void {
    if (this.#entries.size < this.#maxRecords) return;
    const nowMs = this.#nowMs();
    for (const [each, { untilMs }] of this.#entries) {
      if (untilMs + fenceKeptMs <= nowMs) this.#entries.delete(each);
    }
    if (this.#entries.size < this.#maxRecords) return;
    throw new StoreError(
      `${this.#maxRecords} records are in memory: raise \`maxRecords\`, or keep them in a database`,
      { resources: [key] },
    );
  }
}
