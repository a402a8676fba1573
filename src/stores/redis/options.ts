import type { RedisConnection } from "../../clients/contract.ts";
import { durationMs, type Duration } from "../../core/time/durations.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { knownOptions, ttlMinMs } from "../../core/options.ts";
import { wireFormat } from "./commands/keys.ts";
import type { ReplicaSettings, StoreSettings } from "./protocol/store-settings.ts";

export interface DriftOptions {
  /** Share of the TTL by which clocks may drift apart. @default 0.01 */
  readonly factor?: number;
  /**
   * Part that does not depend on the TTL: Redis and our timers round to whole milliseconds.
   * @default 2 ms
   */
  readonly fixed?: Duration;
}

export interface ReplicasOptions {
  /**
   * Number of replicas that must confirm a grant or an extension before it counts. 0 waits for no
   * replica.
   */
  readonly acks: number;
  /**
   * Longest time that the server waits for the replicas. The connection is busy during this time.
   * Must be shorter than `nodeTimeout`.
   * @default "100ms", or half of `nodeTimeout` if that is less
   */
  readonly timeout?: Duration;
}

export interface RedisStoreOptions {
  /**
   * Longest time to wait for one node before a round goes on without it.
   * @default 5 % of the TTL for a quorum, 20 % for one node, at least 50 ms and at most 1 s.
   * Ordinary stalls of a server are shorter than that. A call to a frozen server ends after this
   * time.
   */
  readonly nodeTimeout?: Duration;
  /** Allowance for clock drift: subtracted from every TTL to get the validity. */
  readonly drift?: DriftOptions;
  /** Text before every resource name in its key. @default "" */
  readonly prefix?: string;
  /**
   * True if leases carry a fence. If false, the lock is a plain `SET NX PX`, which is faster, and
   * `lease.fence` throws.
   * @default true
   */
  readonly fencing?: boolean;
  /**
   * `"strict"`: a node that lost its data votes again only after a quarantine and a copy of the
   * counters. `"off"`: such a node votes at once, and may grant a lock that is still held.
   * @default "strict" for three nodes and more, "off" for fewer and without fencing
   */
  readonly admission?: "strict" | "off";
  /**
   * Longest TTL of any lease on these nodes. All clients of the nodes must give the same value. A
   * quarantine lasts this long, plus the allowance for clock drift.
   * @default "30s"
   */
  readonly maxTtl?: Duration;
  /**
   * Handling of several resources in different slots of a Cluster: refuse them, or lock slot after
   * slot in a fixed order.
   * @default "refuse": one step can lock only resources of one slot
   */
  readonly crossSlot?: "refuse" | "ordered";
  /**
   * For one server with replicas: a grant or an extension counts only if `acks` replicas have it,
   * so that a failover to one of them does not lose it. If fewer replicas confirm it, the call
   * fails with a fault.
   * @default none: replication is asynchronous, and a failover may forget the latest grants
   */
  readonly replicas?: ReplicasOptions;
  /**
   * Time for which this manager leaves a lock free after a release or a notification, before its
   * next attempt. Clients of other libraries can then get the lock. At most 100 ms. Give the same
   * value to every Holdfast client of these keys.
   * @default 0: a release and the next acquire run in one script, and no other client can acquire
   * between them
   */
  readonly foreignGap?: Duration;
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
const prefixLengthMax = 200;
/** Limit. The queue entry of a notified waiter expires after 150 ms, so the gap must be shorter. */
const foreignGapMsMax = 100;
const acksMax = 31;
const usualTimeoutMs = 100;

export function resolveStoreOptions(given: RedisStoreOptions, nodeCount: number): StoreSettings {
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
    // An acquire that is sent twice writes nothing the second time, so WAIT would not show which
    // replicas have the grant.
    acquiresMax: replicas === undefined ? 2 : 1,
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
): StoreSettings["admission"] {
  if (given === undefined) return fencing && nodeCount >= 3 ? "strict" : "off";
  if (given !== "strict" && given !== "off") {
    throw new InvalidOptionError("admission", '"strict" or "off"', given);
  }
  if (given === "strict" && !fencing) {
    // Only scripts with fences read the node record, a hash that Holdfast keeps on each server. A
    // plain SET NX PX cannot read it.
    throw new InvalidOptionError("admission", '"off" together with fencing: false', given);
  }
  return given;
}

/** Returns undefined if grants need no confirmation of replicas. */
function resolveReplicas(
  given: ReplicasOptions | undefined,
  nodeCount: number,
  nodeTimeoutMs: number | undefined,
): ReplicaSettings | undefined {
  if (given === undefined) return undefined;
  if (nodeCount > 1) {
    // Each node of a quorum has one vote. Its replicas add no vote.
    throw new InvalidOptionError("replicas", "left out with several nodes", given);
  }
  knownOptions("replicas", given, ["acks", "timeout"]);
  const { acks, timeout } = given;
  if (!Number.isInteger(acks) || acks < 0 || acks > acksMax) {
    throw new InvalidOptionError("replicas.acks", `a whole number from 0 to ${acksMax}`, acks);
  }
  const nodeMs = nodeTimeoutMs ?? Infinity;
  const timeoutMs =
    timeout === undefined
      ? Math.max(1, Math.min(usualTimeoutMs, Math.floor(nodeMs / 2)))
      : durationMs("replicas.timeout", timeout, { minMs: 1, maxMs: 60_000 });
  if (timeoutMs >= nodeMs) {
    throw new InvalidOptionError(
      "replicas.timeout",
      `less than nodeTimeout (${nodeMs} ms)`,
      timeout,
    );
  }
  return acks === 0 ? undefined : { acks, timeoutMs };
}

/**
 * Throws if the client could send WAIT on another connection than the write. WAIT covers only the
 * writes of its own connection.
 */
export function checkLines(
  replicas: ReplicaSettings | undefined,
  connections: readonly RedisConnection[],
): void {
  if (replicas === undefined) return;
  for (const connection of connections) {
    if (connection.topology === "cluster") {
      throw new InvalidOptionError("replicas", "left out with a Cluster client", "replicas.acks");
    }
    if (connection.line === undefined) {
      const expected = "left out with a client that may send by several connections";
      throw new InvalidOptionError("replicas", expected, connection.library);
    }
  }
}
