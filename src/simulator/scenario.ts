import type { LinkPlan } from "./network/link.ts";
import type { ServerPlan } from "./node/server.ts";
import type { Kept } from "./node/simulated-node.ts";
import type { ProcessPlan } from "./process/simulated-process.ts";

/** One fault as plain data, so that scenarios can be stored, reduced and replayed. */
export type Fault =
  | {
      readonly kind: "cut";
      readonly atMs: number;
      readonly forMs: number;
      readonly client: number;
      readonly node: number;
      readonly direction: "there" | "back" | "both";
    }
  /**
   * Cuts each client off from a different minority, so that no two clients reach the same majority.
   */
  | { readonly kind: "ring"; readonly atMs: number; readonly forMs: number }
  | {
      readonly kind: "reset";
      readonly atMs: number;
      readonly client: number;
      readonly node: number;
    }
  | {
      readonly kind: "lag";
      readonly atMs: number;
      readonly forMs: number;
      readonly client: number;
      readonly node: number;
      readonly byMs: number;
    }
  | {
      readonly kind: "crash";
      readonly atMs: number;
      readonly forMs: number;
      readonly node: number;
      readonly kept: Kept;
      readonly silent: boolean;
    }
  | {
      readonly kind: "freeze";
      readonly atMs: number;
      readonly forMs: number;
      readonly node: number;
    }
  | {
      readonly kind: "slow";
      readonly atMs: number;
      readonly forMs: number;
      readonly node: number;
      readonly byMs: number;
    }
  | { readonly kind: "snapshot"; readonly atMs: number; readonly node: number }
  | { readonly kind: "flush"; readonly atMs: number; readonly node: number }
  | { readonly kind: "evict"; readonly atMs: number; readonly node: number }
  | { readonly kind: "evict-record"; readonly atMs: number; readonly node: number }
  | { readonly kind: "script-flush"; readonly atMs: number; readonly node: number }
  | {
      readonly kind: "step-node";
      readonly atMs: number;
      readonly node: number;
      readonly byMs: number;
    }
  | {
      readonly kind: "step-client";
      readonly atMs: number;
      readonly client: number;
      readonly byMs: number;
    }
  | {
      readonly kind: "pause";
      readonly atMs: number;
      readonly forMs: number;
      readonly client: number;
      readonly suspended: boolean;
    }
  | {
      readonly kind: "kill";
      readonly atMs: number;
      readonly forMs: number;
      readonly client: number;
    }
  /** Closes the manager of a client with all its calls under way. A new process follows later. */
  | {
      readonly kind: "quit";
      readonly atMs: number;
      readonly forMs: number;
      readonly client: number;
    };

export type FaultKind = Fault["kind"];

export interface WorkPlan {
  readonly resources: readonly string[];
  /** Number of concurrent loops per client. Each loop acquires locks, works and releases. */
  readonly loops: number;
  readonly ttlMs: number;
  /** TTLs to choose from for each acquire and extend. @default only `ttlMs` */
  readonly lives?: readonly number[];
  readonly waitMs: number;
  readonly thinkMs: number;
  readonly holdMs: number;
  readonly minRetryMs: number;
  readonly maxRetryMs: number;
  readonly renewChance: number;
  readonly severalChance: number;
  readonly abandonChance: number;
  readonly abortChance: number;
  /** Share of acquires that are aborted in the turn in which the store grants. @default 0 */
  readonly abortAtGrantChance?: number;
  readonly extendChance: number;
  readonly proveChance: number;
  readonly lateWriteChance: number;
}

export interface StorePlan {
  readonly fencing: boolean;
  readonly admission: "strict" | "off";
  readonly maxTtlMs: number;
  readonly driftFactor: number;
  readonly driftFixedMs: number;
  /** Limit for the time until a node replies. Undefined: the store's own default. */
  readonly nodeTimeoutMs?: number;
}

/** Complete description of one simulated world. */
export interface Scenario {
  readonly seed: number;
  readonly nodes: readonly ServerPlan[];
  readonly clients: readonly ProcessPlan[];
  readonly link: LinkPlan;
  readonly store: StorePlan;
  readonly work: WorkPlan;
  readonly faults: readonly Fault[];
  /** Length of the phase with faults; all faults are undone at its end. */
  readonly safetyMs: number;
  /** Limit for the time after `safetyMs` in which every client must acquire a lease. */
  readonly livenessMs: number;
}
