import type { Stamp } from "../../../core/time/clock-watch.ts";

const space = 32;
const runIdLength = 12;

/**
 * Parses the first line of a reply: "S sec usec rid". perf (sequential): uses no regular
 * expression, because every reply of a script that grants has such a line.
 */
export function stampOf(reply: unknown): Stamp | undefined {
  if (typeof reply !== "string" || reply.charAt(0) !== "S") return undefined;
  const secondsEnd = digitsEnd(reply, 2);
  const microsEnd = digitsEnd(reply, secondsEnd + 1);
  const end = reply.indexOf("\n");
  if (microsEnd < 0 || end < 0) return undefined;
  const runId = reply.slice(microsEnd + 1, end);
  if (runId !== "-" && !isRunId(runId)) return undefined;
  const seconds = numberIn(reply, 2, secondsEnd);
  const micros = numberIn(reply, secondsEnd + 1, microsEnd);
  return { runId, serverMs: seconds * 1_000 + micros / 1_000 };
}

/** Returns the index of the space after the digits that begin at `start`; -1 if there is none. */
function digitsEnd(text: string, start: number): number {
  let index = start;
  while (isDigit(text.charCodeAt(index))) index += 1;
  return start > 0 && index > start && text.charCodeAt(index) === space ? index : -1;
}

function numberIn(text: string, start: number, end: number): number {
  let number = 0;
  for (let index = start; index < end; index += 1) {
    number = number * 10 + text.charCodeAt(index) - 48;
  }
  return number;
}

function isRunId(text: string): boolean {
  if (text.length !== runIdLength) return false;
  for (let index = 0; index < runIdLength; index += 1) {
    const code = text.charCodeAt(index);
    if (!isDigit(code) && (code < 97 || code > 102)) return false;
  }
  return true;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
