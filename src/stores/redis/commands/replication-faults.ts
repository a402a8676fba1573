import { ReplicationError } from "../../../core/errors.ts";

/**
 * Errors for a refused write. Redis 6 puts other text around the error of a command in a script.
 */
const refusedWrite = /(?:^|[ -])(READONLY|NOREPLICAS|MASTERDOWN) /;

/**
 * Returns the fault if the server refuses writes because of its replicas or a failover; undefined
 * for every other error. The server refuses before it writes anything.
 */
export function replicationFault(error: Error): ReplicationError | undefined {
  switch (refusedWrite.exec(error.message)?.[1]) {
    case "NOREPLICAS":
      return new ReplicationError(
        "min-replicas",
        "the server refuses to write, because fewer replicas are in touch with it than its " +
          "min-replicas-to-write asks for (NOREPLICAS)",
        { cause: error },
      );
    case "READONLY":
    case "MASTERDOWN":
      return new ReplicationError(
        "demoted",
        "the server is a replica and refuses to write: after a failover the client has to find " +
          "the new master first (READONLY)",
        { cause: error },
      );
    default:
      return undefined;
  }
}

/** Returns the fault if too few replicas have a write, so that a failover could lose it. */
export function tooFewAcks(got: number, acks: number, timeoutMs: number): ReplicationError {
  return new ReplicationError(
    "acks",
    `only ${got} of ${acks} replicas confirmed it within ${timeoutMs} ms: a failover could ` +
      "forget it, so it does not count",
  );
}
