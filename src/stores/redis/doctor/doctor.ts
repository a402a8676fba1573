import type { Finding } from "../../../core/doctor.ts";
import type { NodeStatus } from "../../../core/store.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { Quorum } from "../quorum/quorum.ts";
import { examine } from "./examination.ts";
import { canVote, nodeFindings } from "./node-findings.ts";
import { quorumFindings } from "./quorum-findings.ts";
import { aboutNode } from "./told.ts";

/** A slow server has to be told from one that is down: the doctor is more patient than a vote. */
const limitMsMin = 2_000;

/** Asks every node everything, all at once, and says what should not stay as it is. */
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
    nodeFindings(about, examination, status[index]).map((told) =>
      aboutNode(examination.node.name, told),
    ),
  );
  const voting = examinations.filter((examination, index) => canVote(examination, status[index]));
  const clientOffsetMs = clock.wallMs() - clock.monotonicMs();
  return [...each, ...quorumFindings(about, examinations, voting.length, clientOffsetMs)];
}
