import { now } from "../../core/validity.ts";
import type { Clock, Instant } from "../../core/ports.ts";

/** Which process answered, and what its clock said while it did. */
export interface Stamp {
  readonly runId: string;
  readonly serverMs: number;
}

interface Sample {
  readonly runId: string;
  readonly at: Instant;
  /** Server time less ours, by each of our clocks, and how wrong that may be: half the trip. */
  readonly monotonicOffsetMs: number;
  readonly wallOffsetMs: number;
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
  readonly #clock: Clock;
  readonly #allowance: DriftAllowance;
  #reference: Sample | undefined;

  constructor(clock: Clock, allowance: DriftAllowance) {
    this.#clock = clock;
    this.#allowance = allowance;
  }

  /** Takes in one reply; returns how far the clock stepped, or 0. */
  observe(stamp: Stamp, sent: Instant): number {
    const sample = sampleOf(stamp, sent, now(this.#clock));
    const reference = this.#reference;
    if (reference === undefined || reference.runId !== sample.runId) {
      this.#reference = sample;
      return 0;
    }
    const elapsedMs = sample.at.monotonicMs - reference.at.monotonicMs;
    const driftMs = this.#allowance.factor * elapsedMs;
    const allowedMs = reference.errorMs + sample.errorMs + driftMs + this.#allowance.fixedMs;
    const stepMs = sample.monotonicOffsetMs - reference.monotonicOffsetMs;
    const wallStepMs = sample.wallOffsetMs - reference.wallOffsetMs;
    // Our own suspend or clock change shows on one of our clocks only, and is not the server's.
    const stepped = Math.abs(stepMs) > allowedMs && Math.abs(wallStepMs) > allowedMs;
    if (stepped || sample.errorMs <= reference.errorMs + driftMs) this.#reference = sample;
    return stepped ? stepMs : 0;
  }
}

function sampleOf(stamp: Stamp, sent: Instant, received: Instant): Sample {
  const { runId, serverMs } = stamp;
  return {
    runId,
    at: received,
    monotonicOffsetMs: serverMs - (sent.monotonicMs + received.monotonicMs) / 2,
    wallOffsetMs: serverMs - (sent.wallMs + received.wallMs) / 2,
    // Whole milliseconds of the wall clock may hide one.
    errorMs: (received.monotonicMs - sent.monotonicMs) / 2 + 1,
  };
}

/** The stamp in a reply of a granting script, or at the head of a batch. */
export function stampOf(reply: unknown): Stamp | undefined {
  const stamped: unknown = Array.isArray(reply) ? reply[0] : reply;
  if (typeof stamped !== "string" || !/^[SGHQKNB] \d/.test(stamped)) return undefined;
  const [, seconds, micros, runId] = stamped.split(" ", 4);
  const serverMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
  // The path without fences sends no time: "H pttl value" is not a stamp.
  if (runId === undefined || !/^([0-9a-f]{12}|-)$/.test(runId)) return undefined;
  return Number.isFinite(serverMs) ? { runId, serverMs } : undefined;
}
