import { durationMs, type Duration } from "../../core/time/durations.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { knownOptions, ttlMinMs } from "../../core/options.ts";
import { wireFormat } from "./commands/shards.ts";
import { resolveReplicas, type ReplicasOptions, type ResolvedReplicas } from "./replicas-option.ts";

export interface DriftOptions {
  /** Share of the TTL by which clocks may drift apart. @default 0.01 */
  readonly factor?: number;
  /** Fixed part: Redis expires to the millisecond, and so do our timers. @default 2 ms */
  readonly fixed?: Duration;
}

export interface RedisStoreOptions {
  /**
   * Longest time to wait for one node before a round goes on without it.
   * @default 5 % of the TTL for a quorum, 20 % for one node, at least 50 ms and at most 1 s: longer
   * than any ordinary stall of a server, and a call on a server that is frozen ends soon
   */
  readonly nodeTimeout?: Duration;
  /** Allowance for clock drift: subtracted from every TTL to get the validity. */
  readonly drift?: DriftOptions;
  /** Text before every resource name in its key. @default "" */
  readonly prefix?: string;
  /**
   * Whether leases carry a fence. If false, the lock is a plain `SET NX PX`, which is faster, and
   * `lease.fence` throws.
   * @default true
   */
  readonly fencing?: boolean;
  /**
   * `"strict"`: a node that lost its data votes again only after a quarantine and a copy of the
   * counters. `"off"`: it votes at once, and may grant a lock that is still held.
   * @default "strict" for three nodes and more, "off" for fewer and without fencing
   */
  readonly admission?: "strict" | "off";
  /**
   * Longest TTL of the deployment, the same for all its clients. A quarantine lasts this long.
   * @default "30s"
   */
  readonly maxTtl?: Duration;
  /**
   * Handling of several resources in different slots of a Cluster: refuse them, or lock slot after
   * slot in a fixed order.
   * @default "refuse": all or nothing in one step needs one slot
   */
  readonly crossSlot?: "refuse" | "ordered";
  /**
   * For one server with replicas: a grant or an extension counts only if `acks` replicas have it,
   * so that a failover to one of them does not lose it. Fewer are a fault, not contention.
   * @default none: replication is asynchronous, and a failover may forget the latest grants
   */
  readonly replicas?: ReplicasOptions;
  /**
   * For keys that clients of other libraries use, too: time for which this manager leaves a lock
   * free after a release or a wake-up, before its next attempt. At most 100 ms. Give it to every
   * Holdfast client of these keys.
   * @default 0: a release and the next acquire travel in one script, and no other client gets in
   */
  readonly foreignGap?: Duration;
}

export interface ResolvedStoreOptions {
  readonly replicas: ResolvedReplicas | undefined;
  /** Limit of acquires sent to a node in one attempt, if replies are lost. */
  readonly asksMax: number;
  readonly nodeTimeoutMs: number | undefined;
  readonly driftFactor: number;
  readonly driftFixedMs: number;
  readonly prefix: string;
  readonly fencing: boolean;
  readonly admission: "strict" | "off";
  readonly ttlMaxMs: number;
  readonly crossSlot: "refuse" | "ordered";
  readonly foreignGapMs: number;
  readonly nodeCount: number;
  /** Format that a node's record must have for this client to be granted anything there. */
  readonly wireFormat: string;
}

const names = [
  "nodeTimeout",
  "drift",
  "prefix",
  "fencing",
  "admission",
  "maxTtl",
  "crossSlot",
  "replicas",
  "foreignGap",
];
const dayMs = 86_400_000;
const timeoutMsMin = 50;
const timeoutMsMax = 1_000;
const prefixLengthMax = 200;
/** Limit. A notified waiter has 150 ms: a longer gap would cost it its queue entry. */
const foreignGapMsMax = 100;

export function resolveStoreOptions(
  given: RedisStoreOptions,
  nodeCount: number,
): ResolvedStoreOptions {
  knownOptions("options", given, names);
  const { nodeTimeout, drift = {}, prefix = "", fencing = true, maxTtl = 30_000 } = given;
  knownOptions("drift", drift, ["factor", "fixed"]);
  const driftFactor = drift.factor ?? 0.01;
  if (typeof driftFactor !== "number" || !(driftFactor >= 0 && driftFactor <= 0.5)) {
    throw new InvalidOptionError("drift.factor", "a number from 0 to 0.5", driftFactor);
  }
  if (typeof prefix !== "string" || prefix.length > prefixLengthMax) {
    throw new InvalidOptionError(
      "prefix",
      `a text of at most ${prefixLengthMax} characters`,
      prefix,
    );
  }
  if (typeof fencing !== "boolean") {
    throw new InvalidOptionError("fencing", "true or false", fencing);
  }
  const { crossSlot = "refuse" } = given;
  if (crossSlot !== "refuse" && crossSlot !== "ordered") {
    throw new InvalidOptionError("crossSlot", '"refuse" or "ordered"', crossSlot);
  }
  const nodeTimeoutMs =
    nodeTimeout === undefined
      ? undefined
      : durationMs("nodeTimeout", nodeTimeout, { minMs: 1, maxMs: dayMs });
  const replicas = resolveReplicas(given.replicas, nodeCount, nodeTimeoutMs);
  return {
    crossSlot,
    nodeTimeoutMs,
    replicas,
    // A repeated acquire writes nothing, so WAIT would not show which replicas have the grant.
    asksMax: replicas === undefined ? 2 : 1,
    driftFactor,
    driftFixedMs: durationMs("drift.fixed", drift.fixed ?? 2, { minMs: 0, maxMs: dayMs }),
    prefix,
    fencing,
    admission: resolveAdmission(given.admission, fencing, nodeCount),
    foreignGapMs: durationMs("foreignGap", given.foreignGap ?? 0, {
      minMs: 0,
      maxMs: foreignGapMsMax,
    }),
    ttlMaxMs: durationMs("maxTtl", maxTtl, { minMs: ttlMinMs, maxMs: dayMs }),
    nodeCount,
    wireFormat,
  };
}

function resolveAdmission(
  given: unknown,
  fencing: boolean,
  nodeCount: number,
): ResolvedStoreOptions["admission"] {
  if (given === undefined) return fencing && nodeCount >= 3 ? "strict" : "off";
  if (given !== "strict" && given !== "off") {
    throw new InvalidOptionError("admission", '"strict" or "off"', given);
  }
  if (given === "strict" && !fencing) {
    // Only scripts that fence read the node record. A plain SET NX PX cannot.
    throw new InvalidOptionError("admission", '"off" together with fencing: false', given);
  }
  return given;
}

/** Returns the allowance for clock drift that is subtracted from a TTL. */
export function driftMs(options: ResolvedStoreOptions, ttlMs: number): number {
  return ttlMs * options.driftFactor + options.driftFixedMs;
}

/** Returns how long to wait for one node in a round for a lease of `ttlMs`. */
export function nodeTimeoutMs(options: ResolvedStoreOptions, ttlMs: number): number {
  const { nodeCount, replicas } = options;
  const share = nodeCount === 1 ? 0.2 : 0.05;
  // A reply includes the wait for replicas.
  const mostMs = Math.max(timeoutMsMax, 2 * (replicas?.timeoutMs ?? 0));
  return options.nodeTimeoutMs ?? Math.min(mostMs, Math.max(timeoutMsMin, ttlMs * share));
}

/** Returns how long a node that lost its data must not vote: no lease it granted lives longer. */
export function quarantineMs(options: ResolvedStoreOptions, ttlMs: number): number {
  return Math.ceil(ttlMs + driftMs(options, ttlMs));
}
