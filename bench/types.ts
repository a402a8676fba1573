/** What the parts of the benchmark say to one another. Types only: the benchmark itself is .mjs. */

/** How a contender is to lock, the same for all of them. */
export interface Settings {
  readonly ports: readonly number[];
  readonly ttlMs: number;
  /** How long an acquire may wait for a held resource; 0 is one attempt. */
  readonly waitMs: number;
  /** Pause between two attempts; undefined leaves it to the library's own default. */
  readonly pollMs: number | undefined;
  /** Time between two renewals of a kept lock. */
  readonly renewEveryMs: number;
  /** Count the commands that clients send; costs a little, so it is off where time is measured. */
  readonly countCommands: boolean;
  /** Managers of one process, each with a subscriber of its own, one for each call; 1 if left out. */
  readonly managers?: number;
}

/**
 * One library in one process. `acquire` gives the library's own object, so that nothing of the
 * benchmark's is measured with it; both calls reject where the library failed or refused.
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
  /** Whether it comes from a package that only the benchmark needs. */
  readonly peer: boolean;
  readonly nodes: readonly (1 | 5)[];
  open(settings: Settings): Promise<Contender>;
}

/** What a process of a contender can be asked for; the answers are in the files of tasks/. */
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
  /** On the machine's monotonic clock, the same for all processes. */
  readonly startAtMs: number;
  readonly durationMs: number;
  /** A Redis where a counter tells how many are inside; undefined where time is measured. */
  readonly counterPort: number | undefined;
}

/** Task, then when it asked, was granted, began to release, and had released. */
export type Section = readonly [number, number, number, number, number];

export interface ContendResult {
  readonly sections: readonly Section[];
  readonly failures: Readonly<Record<string, number>>;
  readonly commands: number;
  readonly cpuUs: number;
  readonly overlapsCounted: number;
  /** Tasks that still waited when the grace after the end was over. */
  readonly unfinished: number;
}

/** When a waiter was granted, and when it began to release. */
export type Turn = readonly [number, number];

export interface CrowdResult {
  readonly turns: readonly Turn[];
  readonly failures: Readonly<Record<string, number>>;
  /** Waiters that were not served until the bound was over. */
  readonly unserved: number;
}

/** Values of one contender in one case, by metric, one per round; undefined where it was cut. */
export interface Series {
  readonly workload: string;
  readonly label: string;
  readonly nodes: number;
  readonly contender: string;
  readonly values: Record<string, (number | undefined)[]>;
  /** What went wrong, each kind once with its count. */
  readonly problems: Record<string, number>;
}

export interface Options {
  readonly quick: boolean;
  readonly rounds: number;
  readonly names: readonly string[];
  readonly contenders: readonly string[];
  readonly nodes: readonly (1 | 5)[];
  readonly out: string | undefined;
  /** Multiplies every measured time; for tests. */
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

export interface Results {
  readonly machine: Machine;
  readonly options: Options;
  readonly seconds: number;
  readonly series: readonly Series[];
  readonly notes: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
}
