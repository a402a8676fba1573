import type { NodeStatus } from "../../../core/store.ts";
import type { Admission } from "./admission.ts";
import { inspect } from "../protocol/inspect.ts";
import type { Quorum } from "../protocol/quorum.ts";

/** Sends one request to every node, and returns the status of each node. Never rejects. */
export async function nodeStatuses(
  quorum: Quorum,
  admission: Admission,
): Promise<readonly NodeStatus[]> {
  const strict = quorum.options.admission === "strict";
  if (strict) await admission.look();
  else await inspect(quorum, "", "holdfast:no-lock");
  const nowMs = quorum.clock.monotonicMs();
  return quorum.nodes.map((node, index) => {
    const { kind, untilMs } = admission.state(index);
    const isWaiting = strict && kind === "quarantined" && Number.isFinite(untilMs);
    return {
      node: node.name,
      admission: strict ? kind : "off",
      quarantineRemainingMs: isWaiting ? Math.max(0, untilMs - nowMs) : undefined,
      runId: node.runId,
      version: node.version,
      lastFault: node.health.lastFault,
    };
  });
}
