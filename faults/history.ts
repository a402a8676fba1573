import { readFileSync } from "node:fs";

/**
 * The history of a run, one JSON object per line. Each client process writes its own file, the
 * nemesis another; `t` is CLOCK_MONOTONIC in milliseconds, the same for all of them.
 *
 * An event is recorded before a `release` and after a `granted`, so a span of trust read from the
 * history is never longer than the real one.
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

/** Result of a check of the lease by the library's own interface. */
export interface Look extends OfLease {
  readonly what: "look";
  readonly trusted: boolean;
  /** End of the validity, if the library reports it. */
  readonly untilMs?: number;
}

export interface WriteEvent extends OfLease {
  readonly what: "write";
  readonly register: Register;
  /** Unique id of this write, and the value that is written. */
  readonly op: string;
  /** True if the lease was checked right before the write. */
  readonly careful: boolean;
  /** `refused`: a guard saw a greater fence, at the claim before the read or at the write. */
  readonly phase: "call" | "accepted" | "refused" | "refused-claim" | "failed";
}

/** Read of a guarded register, which first claims it with the fence of the lease. */
export interface ReadEvent extends OfLease {
  readonly what: "read";
  readonly register: Register;
  /** Id of the write that follows. */
  readonly op: string;
  readonly phase: "call" | "done";
  /** The write that was read; missing in a call. */
  readonly value?: string;
}

export type ClientEvent =
  | (Stamped & { readonly what: "start" | "stop" | "hung" })
  | (Stamped & { readonly what: "rejection"; readonly message: string })
  | (OfLease & { readonly what: "call" })
  | (OfLease & {
      readonly what: "granted";
      readonly fence?: string;
      readonly untilMs?: number;
      /** Before the first byte of the attempt that was granted, if the library reports it. */
      readonly startedMs?: number;
    })
  | (OfLease & { readonly what: "refused"; readonly why: string })
  | Look
  | (OfLease & {
      /** The library reported the loss of the lease to its holder. */
      readonly what: "reported";
      readonly reason: string;
      readonly untilMs?: number;
      /**
       * Ticks of 50 ms in which the process ran its timers after the end that the library had
       * named, and before the report; missing in old runs.
       */
      readonly ticksLate?: number;
    })
  | ReadEvent
  | WriteEvent
  | (OfLease & { readonly what: "gave-up" })
  | (OfLease & {
      readonly what: "release";
      /** Like that of `reported`, if no loss was reported. */
      readonly ticksLate?: number;
    })
  | (OfLease & {
      readonly what: "released";
      /** `released`, or the reason why not, as the library reports it. */
      readonly outcome: string;
      /** The call that reported it: `using`, or the lease's own `release`. */
      readonly by?: "using" | "release";
    })
  | (OfLease & {
      /** The holder extended or proved the lease, with this outcome. */
      readonly what: "extend" | "prove";
      readonly outcome: string;
      /** Before the first request; missing in old runs. */
      readonly startedMs?: number;
    })
  | (OfLease & { readonly what: "overdue"; readonly call: string; readonly awakeMs: number });

/** An event without the fields that the journal adds. */
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
  /** The write that the writer had read. */
  readonly base: string;
  /** One more than the number that the writer had read. */
  readonly n: number;
  readonly fence?: bigint;
  /** The register's fence before the write: a write with a smaller one should have been refused. */
  readonly fenceBefore?: bigint;
}

export interface History {
  readonly ttlMs: number;
  readonly startMs: number;
  /** Moment from which on every fault is healed. */
  readonly healedMs: number;
  readonly endMs: number;
  readonly resources: readonly string[];
  readonly events: readonly ClientEvent[];
  readonly faults: readonly FaultEvent[];
  readonly applied: readonly AppliedWrite[];
  /** Offset of each client's wall clock for the whole run; missing in old runs. */
  readonly clockOffsetsMs?: readonly number[];
  /** Client processes that ended without a request, or did not end on request. */
  readonly misbehaved: readonly string[];
}

export function readLines<Line>(path: string): Line[] {
  const lines = readFileSync(path, "utf8").split("\n");
  // A killed process may leave half a line.
  if (lines.at(-1) !== "") lines.pop();
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Line);
}
