import { PerformanceObserver, type PerformanceEntry } from "node:perf_hooks";

/**
 * Least duration of a collection to record. Shorter ones come many times a second and matter
 * little.
 */
const leastMs = 10;
/** Number of collections to keep. */
const keptMax = 64;

/**
 * Collections that follow each other within this time count as one pause: almost no work runs
 * between them.
 */
const gapMsMax = 5;

interface Collection {
  readonly endMs: number;
  readonly ms: number;
}

/** Records the long garbage collections of this process, as Node.js reports them. */
export class GarbageCollections {
  /** Recorded collections, the oldest first. */
  #kept: Collection[] = [];
  #observer: PerformanceObserver | undefined;

  watch(): void {
    if (this.#observer !== undefined) return;
    this.#observer = new PerformanceObserver((list) => this.#take(list.getEntries()));
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  end(): void {
    this.#observer?.disconnect();
    this.#observer = undefined;
    this.#kept = [];
  }

  /** Returns the longest collection that ended after `sinceMs`, by `performance.now()`. */
  maxMs(sinceMs: number): number {
    // Takes the entries that Node.js has recorded but not delivered yet.
    this.#take(this.#observer?.takeRecords() ?? []);
    let longest = 0;
    for (const { endMs, ms } of this.#kept) if (endMs > sinceMs && ms > longest) longest = ms;
    return longest;
  }

  #take(entries: readonly PerformanceEntry[]): void {
    for (const { startTime, duration } of entries) {
      if (duration < leastMs) continue;
      const last = this.#kept.at(-1);
      const isNext = last !== undefined && startTime - last.endMs <= gapMsMax;
      if (isNext) this.#kept.pop();
      this.#kept.push({ endMs: startTime + duration, ms: duration + (isNext ? last.ms : 0) });
    }
    if (this.#kept.length > keptMax) this.#kept = this.#kept.slice(-keptMax);
  }
}
