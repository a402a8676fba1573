import { ReplicationError } from "../../core/errors.ts";

/** Redis 6 wraps what a command inside a script is answered with. */
const refusedWrite = /(?:^|[ -])(READONLY|NOREPLICAS|MASTERDOWN) /;

/**
 * What a server says that takes no writes because of its replicas or of a failover, in plain words.
 * Such a refusal comes before anything is written. Undefined for every other error.
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

/** Too few replicas have it, so a failover could forget it. */
export function tooFewAcks(got: number, acks: number, timeoutMs: number): ReplicationError {
  return new ReplicationError(
    "acks",
    `only ${got} of ${acks} replicas confirmed it within ${timeoutMs} ms: a failover could ` +
      "forget it, so it does not count",
  );
}
