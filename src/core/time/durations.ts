import { InvalidOptionError } from "../errors.ts";

/** Milliseconds as a number, or a number with its unit: `"250ms"`, `"30s"`, `"5m"`, `"2h"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h"}`;

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;

export interface DurationBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Turns a duration into whole milliseconds, or throws an error that names the option. */
export function durationMs(option: string, value: unknown, bounds: DurationBounds): number {
  const ms = msOf(value);
  if (ms === undefined || !Number.isSafeInteger(ms) || ms < bounds.minMs || ms > bounds.maxMs) {
    throw new InvalidOptionError(
      option,
      `a duration of whole milliseconds from ${bounds.minMs} ms to ${bounds.maxMs} ms ` +
        `(a number, or a text such as "250ms", "30s", "5m", "2h")`,
      value,
    );
  }
  return ms;
}

/** Limit for the number of texts in `kept`. Programs use few different texts. */
const keptMax = 100;
/** Limit for the length of a text in `kept`. A valid text may have any number of digits. */
const keptLengthMax = 20;
/** perf (sequential): parsed texts with their values, because most calls repeat a few texts. */
const kept = new Map<string, number>();

/** Returns the milliseconds of a duration; undefined if the text is no duration. */
export function msOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return undefined;
  const known = kept.get(value);
  if (known !== undefined) return known;
  const ms = parseText(value);
  // Does not keep an invalid text, which may have any size.
  if (ms === undefined || value.length > keptLengthMax) return ms;
  if (kept.size >= keptMax) kept.clear();
  kept.set(value, ms);
  return ms;
}

function parseText(text: string): number | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const unit = match[2] as keyof typeof unitMs;
  // Rounds to a thousandth, so that "0.1s" is 100 and not 100.00000000000001.
  return Math.round(Number(match[1]) * unitMs[unit] * 1_000) / 1_000;
}
