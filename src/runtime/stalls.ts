import { uptime } from "node:os";
import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";
import type { Stalls } from "../core/ports.ts";
import { GarbageCollections } from "./garbage-collections.ts";

interface Span {
  readonly endMs: number;
  readonly stallMs: number;
  /**
   * Time since boot minus monotonic time, at the end of the span. Grows while the machine sleeps.
   */
  readonly aheadMs: number;
}

/** Time between two samples, and least stall that is measured. Each sample wakes the process up. */
const resolutionMs = 100;
const spanMsMin = 1_000;
const spansMax = 64;

/**
 * Measures stalls of this process's event loop, from the first lease until the last manager is
 * closed. Uses Node.js's own monitor, whose timer does not keep the process running. Keeps one
 * result per span of time, so that the report of a lease does not include older stalls.
 */
export class LoopStalls implements Stalls {
  readonly #nowMs: () => number;
  /**
   * Returns the time since boot, including sleep. `#nowMs` stands still while the machine sleeps.
   */
  readonly #uptimeMs: () => number;
  readonly #collections = new GarbageCollections();
  /** Ended spans, the oldest first. */
  readonly #spans: Span[] = [];
  /** Number of open managers. The measuring continues while at least one is open. */
  #managers = 0;
  #histogram: IntervalHistogram | undefined;
  #spanBeganMs = 0;
  #firstAheadMs = 0;

  constructor(nowMs: () => number, uptimeMs: () => number = () => uptime() * 1_000) {
    this.#nowMs = nowMs;
    this.#uptimeMs = uptimeMs;
  }

  open(): void {
    this.#managers += 1;
  }

  close(): void {
    this.#managers -= 1;
    if (this.#managers > 0) return;
    this.#histogram?.disable();
    this.#histogram = undefined;
    this.#collections.end();
    this.#spans.length = 0;
  }

  watch(): void {
    if (this.#histogram === undefined) {
      this.#histogram = monitorEventLoopDelay({ resolution: resolutionMs });
      this.#histogram.enable();
      this.#collections.watch();
      this.#spanBeganMs = this.#nowMs();
      this.#firstAheadMs = this.#aheadMs;
    } else if (this.#nowMs() - this.#spanBeganMs >= spanMsMin) {
      this.#endSpan(this.#histogram);
    }
  }

  maxMs(sinceMs: number): number {
    if (this.#histogram === undefined) return 0;
    const ended = this.#spans.filter(({ endMs }) => endMs > sinceMs);
    return Math.max(stallOf(this.#histogram), ...ended.map(({ stallMs }) => stallMs));
  }

  maxGcMs(sinceMs: number): number {
    return this.#collections.maxMs(sinceMs);
  }

  suspendedMs(sinceMs: number): number {
    if (this.#histogram === undefined) return 0;
    const before = this.#spans.findLast(({ endMs }) => endMs <= sinceMs);
    return Math.max(0, this.#aheadMs - (before?.aheadMs ?? this.#firstAheadMs));
  }

  get #aheadMs(): number {
    return this.#uptimeMs() - this.#nowMs();
  }

  #endSpan(histogram: IntervalHistogram): void {
    // Rounds down to whole milliseconds, like the start of a lease. A lease that starts now then
    // excludes this span.
    const endMs = Math.floor(this.#nowMs());
    this.#spans.push({ endMs, stallMs: stallOf(histogram), aheadMs: this.#aheadMs });
    histogram.reset();
    this.#spanBeganMs = endMs;
    if (this.#spans.length <= spansMax) return;
    const [oldest, second] = this.#spans.splice(0, 2);
    if (oldest === undefined || second === undefined) return;
    const stallMs = Math.max(oldest.stallMs, second.stallMs);
    this.#spans.unshift({ ...second, stallMs });
  }
}

/** Returns the longest stall. The histogram has times between two samples, in nanoseconds. */
function stallOf(histogram: IntervalHistogram): number {
  return Math.max(0, histogram.max / 1e6 - resolutionMs);
}
