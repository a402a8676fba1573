import { readFileSync } from "node:fs";

/**
 * What happened in a run, one JSON object per line. Each client process writes its own file, the
 * nemesis another; `t` is CLOCK_MONOTONIC in milliseconds, the same for all of them.
 *
 * Lines are written before a thing is given up (`release`) and after it is got (`granted`), so a
 * span of trust read from them is never longer than the real one.
 */

export const registers = ["postgres", "redis", "postgres-fenced", "redis-fenced"] as const;
export type Register = (typeof registers)[number];

interface Stamped {
  readonly t: number;
  /** The process: `c2.1` is the second process that ran as client 2. */
  readonly who: string;
}

interface OfLease extends Stamped {
  readonly lease: string;
  readonly resource: string;
}

/** The library says, by its own interface, whether the lease may be relied upon right now. */
export interface Look extends OfLease {
  readonly what: "look";
  readonly trusted: boolean;
  /** Until when it may, as far as the library says so at all. */
  readonly untilMs?: number;
}

export interface WriteEvent extends OfLease {
  readonly what: "write";
  readonly register: Register;
  /** Unique to this write, and what is written. */
  readonly op: string;
  /** Looked whether the lease was still trusted right before it. */
  readonly careful: boolean;
  /** `refused`: a guard saw a greater fence, at the claim that goes before the read or now. */
  readonly phase: "call" | "accepted" | "refused" | "refused-claim" | "failed";
}

export type ClientEvent =
  | (Stamped & { readonly what: "start" | "stop" | "hung" })
  | (Stamped & { readonly what: "rejection"; readonly message: string })
  | (OfLease & { readonly what: "call" })
  | (OfLease & {
      readonly what: "granted";
      readonly fence?: string;
      readonly untilMs?: number;
      /** Before the first byte of the attempt that was granted, where the library tells. */
      readonly startedMs?: number;
    })
  | (OfLease & { readonly what: "refused"; readonly why: string })
  | Look
  | (OfLease & {
      /** The library told its holder that the lease is lost. */
      readonly what: "told";
      readonly reason: string;
      readonly untilMs?: number;
    })
  | WriteEvent
  | (OfLease & { readonly what: "gave-up" | "release" })
  | (OfLease & {
      readonly what: "released";
      /** `released`, or why not, in the library's own words. */
      readonly outcome: string;
      /** Whether `using` reported it, or the lease's own `release`. */
      readonly by?: "using" | "release";
    })
  | (OfLease & {
      /** The holder had the store extend or prove the lease, and this is what came of it. */
      readonly what: "extend" | "prove";
      readonly outcome: string;
    })
  | (OfLease & { readonly what: "overdue"; readonly call: string; readonly awakeMs: number });

/** Omits what the journal itself adds. */
export type ToJournal = ClientEvent extends infer Event
  ? Event extends ClientEvent
    ? Omit<Event, "t" | "who">
    : never
  : never;

export interface FaultEvent {
  readonly t: number;
  readonly id: number;
  readonly kind: string;
  readonly phase: "begin" | "end";
  readonly nodes: readonly number[];
  readonly clients: readonly number[];
  readonly detail: string;
}

/** One accepted write, in the order in which the server applied it. */
export interface AppliedWrite {
  readonly register: Register;
  readonly resource: string;
  readonly op: string;
  /** The write that its writer had read. */
  readonly base: string;
  /** One more than what its writer had read. */
  readonly n: number;
  readonly fence?: bigint;
  /** The register's fence before it: a write with a smaller one should have been refused. */
  readonly fenceBefore?: bigint;
}

export interface History {
  readonly ttlMs: number;
  readonly startMs: number;
  /** From here on every fault is healed. */
  readonly healedMs: number;
  readonly endMs: number;
  readonly resources: readonly string[];
  readonly events: readonly ClientEvent[];
  readonly faults: readonly FaultEvent[];
  readonly applied: readonly AppliedWrite[];
  /** How far the wall clock of each client is ahead for the whole run; none for runs of long ago. */
  readonly clockOffsetsMs?: readonly number[];
  /** Client processes that ended when nobody had asked them to, or not when asked. */
  readonly misbehaved: readonly string[];
}

export function readLines<Line>(path: string): Line[] {
  const lines = readFileSync(path, "utf8").split("\n");
  // A killed process may leave half a line.
  if (lines.at(-1) !== "") lines.pop();
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Line);
}
