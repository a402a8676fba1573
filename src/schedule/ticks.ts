import { InvalidOptionError } from "../core/errors.ts";

/**
 * Anything that knows when it runs next, such as a `Cron` of croner. It decides about time zones
 * and daylight saving time. It must return the same times in every process.
 */
export interface NextRun {
  /** Returns the first time after `after`; null or undefined if there is none. */
  nextRun(after: Date): Date | null | undefined;
}

/** The times of a schedule, in ms since 1970. */
export interface Ticks {
  /** Returns the first tick after the time. Undefined if there is none. */
  next(afterMs: number): number | undefined;
  /** Returns the last ticks after `afterMs` and up to `untilMs`, at most `max`, oldest first. */
  between(afterMs: number, untilMs: number, max: number): readonly number[];
}

/** Limit for the number of times that are counted in one look. */
const countedMax = 100_000;

/** Returns the multiples of an interval since 1970, plus the offset. */
export function everyTicks(everyMs: number, offsetMs: number): Ticks {
  const last = (ms: number): number => {
    return Math.floor((ms - offsetMs) / everyMs) * everyMs + offsetMs;
  };
  return {
    next: (afterMs) => last(afterMs) + everyMs,
    between(afterMs, untilMs, max) {
      const latest = last(untilMs);
      const count = Math.min(max, Math.floor((latest - last(afterMs)) / everyMs));
      return Array.from(
        { length: Math.max(0, count) },
        (_, index) => latest - (count - 1 - index) * everyMs,
      );
    },
  };
}

/** Returns the times of a cron library. */
export function cronTicks(at: NextRun): Ticks {
  const next = (afterMs: number): number | undefined => {
    const tick = at.nextRun(new Date(afterMs));
    if (tick === null || tick === undefined) return undefined;
    const tickMs = tick.getTime();
    if (tickMs > afterMs) return tickMs;
    throw new InvalidOptionError("at", "an object whose nextRun(after) is after `after`", tick);
  };
  return {
    next,
    between(afterMs, untilMs, max) {
      const found: number[] = [];
      let tickMs = next(afterMs);
      for (let count = 0; tickMs !== undefined && tickMs <= untilMs; count += 1) {
        if (count >= countedMax) break;
        found.push(tickMs);
        if (found.length > max) found.shift();
        tickMs = next(tickMs);
      }
      return found;
    },
  };
}
