import { PerformanceObserver, type PerformanceEntry } from "node:perf_hooks";

/** Shorter ones come many times a second, and are nobody's loss. */
const leastMs = 10;
const keptMax = 64;

/** Some collections are one upon the other, with nothing done in between: one pause. */
const gapMsMax = 5;

interface Collection {
  readonly endMs: number;
  readonly ms: number;
}

/** The long garbage collections of this process, as Node tells of them. */
export class GarbageCollections {
  /** The oldest first. */
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

  /** The longest that ended after `sinceMs` by `performance.now()`. */
  maxMs(sinceMs: number): number {
    // Those that Node has noted already, and would deliver only later.
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
