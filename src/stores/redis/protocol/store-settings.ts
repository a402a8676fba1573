import { InvalidOptionError } from "../../../core/errors.ts";
import type { Deployment } from "../commands/modes.ts";

/** Number of replicas that must confirm a grant, and the time that the server waits for them. */
export interface ReplicaSettings {
  readonly acks: number;
  readonly timeoutMs: number;
}

/** Options of a store, checked and with all defaults. */
export interface StoreSettings extends Deployment {
  readonly replicas: ReplicaSettings | undefined;
  /** Limit of acquires sent to a node in one attempt, if replies are lost. */
  readonly acquiresMax: number;
  readonly nodeTimeoutMs: number | undefined;
  readonly driftFactor: number;
  readonly driftFixedMs: number;
  readonly prefix: string;
  readonly fencing: boolean;
  readonly crossSlot: "refuse" | "ordered";
  readonly foreignGapMs: number;
  readonly nodeCount: number;
}

const timeoutMsMin = 50;
const timeoutMsMax = 1_000;

/** Returns the allowance for clock drift that is subtracted from a TTL. */
export function driftMs(options: StoreSettings, ttlMs: number): number {
  return ttlMs * options.driftFactor + options.driftFixedMs;
}

/** Returns how long to wait for one node in a round for a lease of `ttlMs`. */
export function nodeTimeoutMs(options: StoreSettings, ttlMs: number): number {
  const { nodeCount, replicas } = options;
  const share = nodeCount === 1 ? 0.2 : 0.05;
  // A reply includes the wait for replicas.
  const mostMs = Math.max(timeoutMsMax, 2 * (replicas?.timeoutMs ?? 0));
  return options.nodeTimeoutMs ?? Math.min(mostMs, Math.max(timeoutMsMin, ttlMs * share));
}

/** Returns how long a node that lost its data must not vote: no lease it granted lives longer. */
export function quarantineMs(options: StoreSettings, ttlMs: number): number {
  return Math.ceil(ttlMs + driftMs(options, ttlMs));
}

/** Throws if a reply after the wait for replicas would be too late for a round with this TTL. */
export function checkTtl(
  replicas: ReplicaSettings | undefined,
  ttlMs: number,
  nodeTimeoutMs: number,
): void {
  if (replicas === undefined || replicas.timeoutMs < nodeTimeoutMs) return;
  throw new InvalidOptionError(
    "ttl",
    `longer: nodeTimeout is then ${Math.round(nodeTimeoutMs)} ms, and replicas.timeout ` +
      `(${replicas.timeoutMs} ms) has to fit into it`,
    ttlMs,
  );
}
