import type { Finding } from "../../core/report/doctor.ts";
import { quorumOf } from "./protocol/ballot.ts";

export function infoDeniedWarning({ name }: { readonly name: string }): Finding {
  return {
    level: "warning",
    code: "info-denied",
    node: name,
    what: "this user may not run INFO",
    why: "the same server given twice, its version and its restarts are unknown",
    remedy: "allow it: ACL SETUSER <user> +info",
  };
}

export function evenWarning(nodeCount: number): Finding {
  return {
    level: "warning",
    code: "even-nodes",
    what: `${nodeCount} nodes`,
    why:
      `a quorum of ${nodeCount} needs ${quorumOf(nodeCount)}: it survives no more failures ` +
      `than ${nodeCount - 1} nodes would, and two rivals can split it evenly`,
    remedy: "use an odd number of nodes",
  };
}
