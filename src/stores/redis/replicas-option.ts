import type { RedisConnection } from "../../clients/contract.ts";
import { durationMs, type Duration } from "../../core/time/durations.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { knownOptions } from "../../core/options.ts";

export interface ReplicasOptions {
  /**
   * Number of replicas that must have a grant or an extension before it counts. 0 waits for none.
   */
  readonly acks: number;
  /**
   * Longest time that the server waits for them; the connection is busy for as long. Must be
   * shorter than `nodeTimeout`.
   * @default "100ms", or half of `nodeTimeout` where that is less
   */
  readonly timeout?: Duration;
}

export interface ResolvedReplicas {
  readonly acks: number;
  readonly timeoutMs: number;
}

const acksMax = 31;
const usualTimeoutMs = 100;

/** Returns undefined if no replica is to be waited for. */
export function resolveReplicas(
  given: ReplicasOptions | undefined,
  nodeCount: number,
  nodeTimeoutMs: number | undefined,
): ResolvedReplicas | undefined {
  if (given === undefined) return undefined;
  if (nodeCount > 1) {
    // Each node of a quorum has one vote: its replicas add none.
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

/** Throws if WAIT could leave by another connection than the write: it covers only its own. */
export function checkLines(
  replicas: ResolvedReplicas | undefined,
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

/** Throws if a reply after the wait for replicas would be too late for a round with this TTL. */
export function checkTtl(
  replicas: ResolvedReplicas | undefined,
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
