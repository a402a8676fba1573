import { uptime } from "node:os";
import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";
import type { Stalls } from "../core/ports.ts";
import { GarbageCollections } from "./garbage-collections.ts";

interface Span {
  readonly endMs: number;
  readonly stallMs: number;
  /** By how much the time since boot was ahead of ours when it ended. */
  readonly aheadMs: number;
}

/**
 * How often the loop is looked at: stalls shorter than this are nobody's loss, and each look wakes
 * the process up.
 */
const resolutionMs = 100;
const spanMsMin = 1_000;
const spansMax = 64;

/**
 * Stalls of this process's event loop, measured by Node itself, from the first lease on until the
 * last manager is closed. Its timer keeps no process running. Kept by spans of time, so that an old
 * stall is not blamed for the loss of a later lease.
 */
export class LoopStalls implements Stalls {
  readonly #nowMs: () => number;
  /** Since boot, sleep included; our own clock stands still while the machine sleeps. */
  readonly #uptimeMs: () => number;
  readonly #collections = new GarbageCollections();
  /** The oldest first. */
  readonly #spans: Span[] = [];
  /** Managers that are open. Those that are never closed keep it measuring. */
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

  gcMsMax(sinceMs: number): number {
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
    // In whole milliseconds, as leases count theirs: one that begins right now is not to be blamed.
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

/** Node counts from one look to the next, in nanoseconds, the time between them included. */
function stallOf(histogram: IntervalHistogram): number {
  return Math.max(0, histogram.max / 1e6 - resolutionMs);
}
