import type { LockEvents } from "../../core/events.ts";
import { quorumOf } from "./protocol/ballot.ts";

type Warning = LockEvents["warning"];

export function infoDeniedWarning({ name }: { readonly name: string }): Warning {
  return {
    what: `${name}: this user may not run INFO`,
    why: "the same server given twice, its version and its restarts are unknown",
    remedy: "allow it: ACL SETUSER <user> +info",
  };
}

export function evenWarning(nodeCount: number): Warning {
  return {
    what: `${nodeCount} nodes`,
    why:
      `a quorum of ${nodeCount} needs ${quorumOf(nodeCount)}: it survives no more failures ` +
      `than ${nodeCount - 1} nodes would, and two rivals can split it evenly`,
    remedy: "use an odd number of nodes",
  };
}
