/** Types of the benchmark, which itself is .mjs. */

/** Settings for a contender, the same for all of them. */
export interface Settings {
  readonly ports: readonly number[];
  readonly ttlMs: number;
  /** Limit for the wait of an acquire; 0 is one attempt. */
  readonly waitMs: number;
  /** Pause between two attempts; undefined means the library's own default. */
  readonly pollMs: number | undefined;
  /** Time between two renewals of a kept lock. */
  readonly renewEveryMs: number;
  /** Counts the commands of the clients. Costs a little, so it is off while time is measured. */
  readonly countCommands: boolean;
  /** Managers of one process, each with its own subscriber, one for each call. @default 1 */
  readonly managers?: number;
}

/**
 * One library in one process. `acquire` returns the library's own object, so that no object of the
 * benchmark is measured. Both calls reject if the library failed or refused.
 */
export interface Contender {
  readonly acquire: (resource: string) => Promise<unknown>;
  readonly release: (held: unknown) => Promise<unknown>;
  /** Acquires and renews until it is released by `drop`. */
  readonly keep: (resource: string) => Promise<unknown>;
  readonly drop: (kept: unknown) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

export interface ContenderKind {
  readonly id: string;
  readonly title: string;
  /** True for a package that only the benchmark needs. */
  readonly peer: boolean;
  readonly nodes: readonly (1 | 5)[];
  open(settings: Settings): Promise<Contender>;
}

/** A request to a process of a contender. The results are in the files of tasks/. */
export interface Request {
  readonly id: number;
  readonly task: string;
  readonly input: unknown;
}

export type Reply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string };

export interface CyclesInput {
  readonly prefix: string;
  readonly inFlight: number;
  readonly durationMs: number;
}

export interface CyclesResult {
  readonly cycles: number;
  readonly elapsedMs: number;
  readonly cpuUs: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Cycles that had begun and did not end within the grace. */
  readonly unfinished: number;
}

export interface ContendInput {
  readonly resource: string;
  readonly firstTask: number;
  readonly tasks: number;
  readonly thinkMs: number;
  /** By the machine's monotonic clock, the same for all processes. */
  readonly startAtMs: number;
  readonly durationMs: number;
  /** A Redis that counts the tasks inside a section; undefined while time is measured. */
  readonly counterPort: number | undefined;
}

/** Task, then the times of request, grant, begin of the release, and end of the release. */
export type Section = readonly [number, number, number, number, number];

export interface ContendResult {
  readonly sections: readonly Section[];
  readonly failures: Readonly<Record<string, number>>;
  readonly commands: number;
  readonly cpuUs: number;
  readonly overlapsCounted: number;
  /** Tasks that still waited at the end of the grace. */
  readonly unfinished: number;
}

/** Times at which a waiter was granted, and at which it began to release. */
export type Turn = readonly [number, number];

export interface CrowdResult {
  readonly turns: readonly Turn[];
  readonly failures: Readonly<Record<string, number>>;
  /** Waiters that were not served within the limit. */
  readonly unserved: number;
}

/** Values of one contender in one case, by metric, one per round; undefined for a cut round. */
export interface Series {
  readonly workload: string;
  readonly label: string;
  readonly nodes: number;
  readonly contender: string;
  readonly values: Record<string, (number | undefined)[]>;
  /** Failures by kind, with their counts. */
  readonly problems: Record<string, number>;
}

export interface Options {
  readonly quick: boolean;
  readonly rounds: number;
  readonly names: readonly string[];
  readonly contenders: readonly string[];
  readonly nodes: readonly (1 | 5)[];
  readonly out: string | undefined;
  /** True if the results replace those of the same workloads in the results that are kept. */
  readonly merge: boolean;
  /** Factor for every measured time; for tests. */
  readonly scale: number;
  readonly peers: boolean;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
  readonly redis: string;
  readonly date: string;
  readonly commit: string;
  readonly loadBefore: readonly number[];
}

/** One call of the benchmark, and the workloads whose results are of it. */
export interface Run {
  readonly machine: Machine;
  readonly options: Options;
  readonly seconds: number;
  readonly notes: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
}

export interface Results {
  readonly runs: readonly Run[];
  readonly series: readonly Series[];
}
