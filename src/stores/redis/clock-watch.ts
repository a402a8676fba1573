import type { Instant, SteadyClock } from "../../core/ports.ts";

/** Which process answered, and what its clock said while it did. */
export interface Stamp {
  readonly runId: string;
  readonly serverMs: number;
}

interface Sample {
  readonly runId: string;
  readonly atMs: number;
  /** Server time less ours, by each of our times, and how wrong that may be: half the trip. */
  readonly monotonicOffsetMs: number;
  readonly steadyOffsetMs: number;
  readonly errorMs: number;
}

/** How far a server's clock may move against ours before it counts as a step. */
export interface DriftAllowance {
  readonly factor: number;
  readonly fixedMs: number;
}

/**
 * Watches one server's clock through the time in its replies. A step forward lets keys expire
 * early, so that a vote given before it is worth nothing; a step back only keeps them longer. It is
 * seen at the next reply: this narrows the window, it cannot close it.
 */
export class ClockWatch {
  readonly #clock: SteadyClock;
  readonly #allowance: DriftAllowance;
  #reference: Sample | undefined;
  /** Server time less our monotonic time, by the last reply. */
  #offsetMs: number | undefined;
  #errorMs = Infinity;
  #atMs = -Infinity;

  constructor(clock: SteadyClock, allowance: DriftAllowance) {
    this.#clock = clock;
    this.#allowance = allowance;
  }

  /** The server's time at a moment of our monotonic clock; undefined before the first reply. */
  serverMsAt(monotonicMs: number): number | undefined {
    return this.#offsetMs === undefined ? undefined : monotonicMs + this.#offsetMs;
  }

  /** Server time less our monotonic time, by the last reply; undefined before it. */
  get offsetMs(): number | undefined {
    return this.#offsetMs;
  }

  /** When the last reply came, by our monotonic clock. */
  get atMs(): number {
    return this.#atMs;
  }

  /** How wrong the offset may be: half the round trip of the last reply. */
  get errorMs(): number {
    return this.#errorMs;
  }

  /** Takes in one reply; returns how far the clock stepped, or 0. */
  observe(stamp: Stamp, sent: Instant): number {
    const { runId, serverMs } = stamp;
    const { monotonicMs: atMs, steadyMs } = this.#clock.now();
    const monotonicOffsetMs = serverMs - (sent.monotonicMs + atMs) / 2;
    this.#offsetMs = monotonicOffsetMs;
    const steadyOffsetMs = serverMs - (sent.steadyMs + steadyMs) / 2;
    // Whole milliseconds of the wall clock may hide one.
    const errorMs = (atMs - sent.monotonicMs) / 2 + 1;
    this.#errorMs = errorMs;
    this.#atMs = atMs;
    const reference = this.#reference;
    if (reference === undefined || reference.runId !== runId) {
      this.#reference = { runId, atMs, monotonicOffsetMs, steadyOffsetMs, errorMs };
      return 0;
    }
    const driftMs = this.#allowance.factor * (atMs - reference.atMs);
    const allowedMs = reference.errorMs + errorMs + driftMs + this.#allowance.fixedMs;
    const stepMs = monotonicOffsetMs - reference.monotonicOffsetMs;
    const steadyStepMs = steadyOffsetMs - reference.steadyOffsetMs;
    // Our own suspend shows in one of our times only, and is not the server's.
    const stepped = Math.abs(stepMs) > allowedMs && Math.abs(steadyStepMs) > allowedMs;
    if (stepped || errorMs <= reference.errorMs + driftMs) {
      this.#reference = { runId, atMs, monotonicOffsetMs, steadyOffsetMs, errorMs };
    }
    return stepped ? stepMs : 0;
  }
}

const space = 32;
const runIdLength = 12;

/**
 * The stamp in a reply of a granting script, or at the head of a batch: "G sec usec rid …". Read by
 * hand, as every such reply is.
 */
export function stampOf(reply: unknown): Stamp | undefined {
  const stamped: unknown = Array.isArray(reply) ? reply[0] : reply;
  if (typeof stamped !== "string" || stamped.charCodeAt(1) !== space) return undefined;
  if (!"SGHQKNBV".includes(stamped.charAt(0))) return undefined;
  const secondsEnd = digitsEnd(stamped, 2);
  const microsEnd = digitsEnd(stamped, secondsEnd + 1);
  // The path without fences sends no time: "H pttl value" is not a stamp.
  if (microsEnd < 0) return undefined;
  const last = stamped.indexOf(" ", microsEnd + 1);
  const runId = stamped.slice(microsEnd + 1, last < 0 ? stamped.length : last);
  if (runId !== "-" && !isRunId(runId)) return undefined;
  const seconds = numberIn(stamped, 2, secondsEnd);
  const micros = numberIn(stamped, secondsEnd + 1, microsEnd);
  return { runId, serverMs: seconds * 1_000 + micros / 1_000 };
}

/** Where the digits from `start` on end, with a space; -1 where they do not. */
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
