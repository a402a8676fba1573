import type { Finding } from "../../../core/report/doctor.ts";
import type { NodeStatus } from "../../../core/store.ts";
import type { Quorum } from "../protocol/quorum.ts";
import { examine } from "./examination.ts";
import { canVote, nodeFindings } from "./node-findings.ts";
import { quorumFindings } from "./quorum-findings.ts";
import { aboutNode } from "../node/node-finding.ts";
import { nodeTimeoutMs } from "../protocol/store-settings.ts";

/**
 * Least time that the doctor waits for a reply. Longer than a node timeout, so that a slow server
 * is not reported as one that is down.
 */
const limitMsMin = 2_000;

/** Examines all nodes at once and returns what should be changed. */
export async function diagnose(
  quorum: Quorum,
  ttlMs: number,
  statuses: () => Promise<readonly NodeStatus[]>,
): Promise<readonly Finding[]> {
  const { nodes, options, scheduler, clock } = quorum;
  const limitMs = Math.max(limitMsMin, nodeTimeoutMs(options, options.ttlMaxMs));
  const context = { scheduler, options, limitMs };
  const examinations = await Promise.all(nodes.map((node) => examine(context, node)));
  const status = await statuses();
  const about = { options, ttlMs };
  const each = examinations.flatMap((examination, index) =>
    nodeFindings(about, examination, status[index]).map((finding) =>
      aboutNode(examination.node.name, finding),
    ),
  );
  const voting = examinations.filter((examination, index) => canVote(examination, status[index]));
  const clientOffsetMs = clock.wallMs() - clock.monotonicMs();
  return [...each, ...quorumFindings(about, examinations, voting.length, clientOffsetMs)];
}
