import { StoreError } from "../../../core/errors.ts";
import type { Scheduler } from "../../../core/time/scheduler.ts";
import type { NodeReply } from "../node/node-reply.ts";
import type { RedisNode } from "../node/node.ts";
import { quorumOf } from "../protocol/ballot.ts";
import { Rounds } from "../protocol/round.ts";
import { layoutCall, type LayoutAct, type LayoutReply } from "./layout-call.ts";
import type { Layout } from "./layout.ts";
import { nodeTimeoutMs, type StoreSettings } from "../protocol/store-settings.ts";

/** Nodes of one group of this layout, or of a retired one: a group of the previous layout only. */
export interface Members {
  readonly id: string;
  readonly nodes: readonly RedisNode[];
}

export interface Answer {
  readonly node: RedisNode;
  readonly members: Members;
  readonly reply: NodeReply<LayoutReply>;
}

/** Reply of a node that is in this layout, or may join it. */
export type LayoutState = Exclude<LayoutReply, { readonly kind: "other" }>;

interface StepContext {
  readonly layout: Layout;
  readonly options: StoreSettings;
  readonly scheduler: Scheduler;
}

/**
 * Sends the request `step` (look, claim, open or heal) to every node of the group. Waits for all of
 * them, up to the node timeout.
 */
export function sendStep(
  context: StepContext,
  members: Members,
  step: LayoutAct,
): Promise<Answer[]> {
  const { layout, options, scheduler } = context;
  const { nodes } = members;
  return new Promise((resolve) => {
    const answers: Answer[] = [];
    let left = nodes.length;
    if (left === 0) return resolve(answers);
    const call = layoutCall(layout, members.id, step);
    const rounds = new Rounds(nodes, quorumOf(nodes.length), scheduler);
    const round = rounds.toAll(call, nodeTimeoutMs(options, options.ttlMaxMs), {
      wanted: () => left > 0,
      onReply(index, reply, late) {
        const node = nodes[index];
        if (late || node === undefined) return;
        answers.push({ node, members, reply });
        left -= 1;
        if (left > 0) return;
        round.end();
        resolve(answers);
      },
    });
  });
}

export function statesIn(answers: readonly Answer[]): LayoutState[] {
  return answers.flatMap(({ reply }) => {
    return reply.kind === "reply" && reply.reply.kind !== "other" ? [reply.reply] : [];
  });
}

/**
 * Returns an error for the first node that is in another layout, or in another group of this
 * layout.
 */
export function contradiction(answers: readonly Answer[]): StoreError | undefined {
  for (const { node, members, reply } of answers) {
    if (reply.kind !== "reply" || reply.reply.kind !== "other") continue;
    const { message } = reply.reply.error;
    return new StoreError(`${node.name} was given as of group "${members.id}", but ${message}`);
  }
  return undefined;
}

/** Returns the greatest fence that any node may have granted: later fences must be greater. */
export function floorOf(states: readonly LayoutState[]): number {
  return Math.max(0, ...states.map((one) => (one.kind === "open" ? one.floor : one.highest)));
}
