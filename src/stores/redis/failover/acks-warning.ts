import type { ReplicationError } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";

/** Emits a warning when replicas begin to confirm too little: once per outage. */
export function acksWarning(
  node: string,
  acks: number,
  events: Emitter,
): (fault: ReplicationError | undefined) => void {
  let short = false;
  return (fault) => {
    if (fault !== undefined && !short) {
      events.emit("warning", {
        level: "error",
        code: "acks-missing",
        node,
        what: fault.message,
        why: `with replicas.acks ${acks} nothing is granted or extended until so many confirm`,
        remedy: "see that the replicas are connected and keep up, or raise replicas.timeout",
      });
    }
    short = fault !== undefined;
  };
}
