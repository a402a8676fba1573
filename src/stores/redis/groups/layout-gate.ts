/**
 * Opens a layout, which is the set of groups (independent quorums) that share the resources. Sends
 * no lock request to a group in which the layout is not open.
 *
 * Problem: when the groups change, a resource moves to other nodes. Two layouts must never grant
 * the same resource within the life of one lease, and its fences must go on growing.
 *
 * Idea:
 * - A node belongs to one layout at a time. Every script that grants, extends or proves compares
 *   that layout with the client's. A node changes only to a layout with a greater version.
 * - To open a layout, *every* node of its groups, and of the groups of the previous layout, is
 *   first claimed: it then grants and extends for no client. The layout opens when each node has
 *   been claimed for D = maxTtl + drift, by its own clock.
 * - The last lease of the older layout was confirmed by a quorum of unclaimed nodes, and its
 *   validity counts from before that, so it is over after D. Its fence is at most the greatest
 *   counter read from the claimed nodes. That counter becomes the floor of every opened node.
 * - So if a quorum of a group is open, all of these steps were completed. A client needs to check
 *   only the groups it uses, and each group can fail without the others.
 *
 * Limits: while a layout opens, nothing is granted for D. Every node is needed once for it; a group
 * whose servers are gone for good has to be declared as retired.
 */

import { InvalidOptionError, QuorumError, StoreError } from "../../../core/errors.ts";
import type { HoldfastError, Vote } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";
import type { Scheduler } from "../../../core/time/scheduler.ts";
import type { RedisNode } from "../node/node.ts";
import { quorumOf } from "../protocol/ballot.ts";
import type { LayoutAct } from "./layout-call.ts";
import { sendStep, contradiction, floorOf, statesIn } from "./layout-round.ts";
import type { Answer, Members, LayoutState } from "./layout-round.ts";
import type { Layout } from "./layout.ts";
import { quarantineMs, type StoreSettings } from "../protocol/store-settings.ts";

export interface GateContext {
  readonly layout: Layout;
  /** Groups, in the order of the layout's ids. */
  readonly groups: readonly Members[];
  readonly retired: readonly Members[];
  readonly options: StoreSettings;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
}

/** Reason why no lock of a group can be requested, now or at all. */
export interface Refusal {
  readonly error: HoldfastError;
  readonly retryable: boolean;
}

/** Lets no lock request through to a group before a quorum of its nodes grants for this layout. */
export class LayoutGate {
  readonly #context: GateContext;
  readonly #open = new Set<number>();
  #opening: Promise<Refusal | undefined> | undefined;
  /**
   * Set while every node is claimed but must wait: the monotonic end of the wait, and the refusal
   * that callers get until then.
   */
  #pause: { readonly untilMs: number; readonly refusal: Refusal } | undefined;
  #hasWarned = false;

  constructor(context: GateContext) {
    this.#context = context;
  }

  isOpen(group: number): boolean {
    return this.#open.has(group);
  }

  /**
   * Called when nodes of the group refused a request although the layout was open there: the next
   * lock request checks the group again.
   */
  forget(group: number): void {
    this.#open.delete(group);
  }

  /**
   * Returns undefined if the layout is open on a quorum of the group, and the refusal otherwise.
   * Opens the layout if needed. Never rejects. Errors name `resources`.
   */
  async pass(group: number, resources: readonly string[] = []): Promise<Refusal | undefined> {
    const first = await this.#judge(group, resources);
    if (first !== "unopened") return first;
    const { scheduler } = this.#context;
    if (this.#pause !== undefined && this.#pause.untilMs > scheduler.clock.monotonicMs()) {
      return this.#pause.refusal;
    }
    this.#opening ??= this.#openAll().finally(() => {
      this.#opening = undefined;
    });
    const refusal = await this.#opening;
    if (refusal !== undefined) return refusal;
    const second = await this.#judge(group, resources);
    return second === "unopened" ? this.#later("it is being opened") : second;
  }

  async #judge(
    group: number,
    resources: readonly string[],
  ): Promise<Refusal | undefined | "unopened"> {
    const { groups, options } = this.#context;
    const members = groups[group];
    if (members === undefined) throw new RangeError(`there is no group ${group}`);
    const answers = await this.#send(members, { act: "look" });
    const setupError = this.#setupError(answers);
    if (setupError !== undefined) return { error: setupError, retryable: false };
    const states = statesIn(answers);
    const size = quorumOf(options.nodeCount);
    const open = states.filter(({ kind }) => kind === "open");
    if (open.length >= size) {
      this.#open.add(group);
      if (open.length < states.length)
        await this.#send(members, { act: "heal", floor: floorOf(states) });
      return undefined;
    }
    this.#open.delete(group);
    const other = contradiction(answers);
    if (other !== undefined) return { error: other, retryable: false };
    return states.length < size ? unreachable(answers, size, resources) : "unopened";
  }

  /**
   * Claims every node: it then grants for no client. Opens the layout on all nodes when each has
   * been claimed for long enough.
   */
  async #openAll(): Promise<Refusal | undefined> {
    const { layout, groups, retired } = this.#context;
    // Changes nothing before it is certain that the opening can be completed.
    const seen = await this.#sendAll([...groups, ...retired], { act: "look" });
    const setupError = this.#setupError(seen);
    if (setupError !== undefined) return { error: setupError, retryable: false };
    const states = statesIn(seen);
    if (states.some(({ kind }) => kind === "open")) {
      // Some nodes grant for this layout: another client has opened it, but did not reach every
      // node. Opens it on the others.
      await this.#sendAll(groups, { act: "heal", floor: floorOf(states) });
      return undefined;
    }
    const before = this.#obstacle(seen);
    if (before !== undefined) return before;
    const missing = layout.missing(states.flatMap((one) => (one.kind === "open" ? [] : one.ids)));
    if (missing.length > 0) return { error: this.#unspoken(missing), retryable: false };
    const claims = await this.#sendAll([...groups, ...retired], { act: "claim" });
    const after = this.#obstacle(claims);
    if (after !== undefined) return after;
    const waitMs = this.#waitMs(statesIn(claims));
    const leftMs = Math.max(...statesIn(claims).map((one) => waitMs - waitedMs(one)));
    if (leftMs > 0) return this.#waitFor(leftMs);
    await this.#sendAll(groups, { act: "open", waitMs, floor: floorOf(statesIn(claims)) });
    return undefined;
  }

  /** Returns an error if one server is in two groups, as far as the replies show. */
  #setupError(answers: readonly Answer[]): HoldfastError | undefined {
    const { layout, groups, retired } = this.#context;
    const seen = new Map<string, RedisNode>();
    for (const node of [...groups, ...retired].flatMap(({ nodes }) => nodes)) {
      if (node.runId === undefined) continue;
      const twin = seen.get(node.runId);
      if (twin !== undefined) {
        const got = `the same server twice, as ${twin.name} and ${node.name}`;
        return new InvalidOptionError("groups", "different servers", got);
      }
      seen.set(node.runId, node);
    }
    const mixedUp = answers.filter(({ members, reply }) => {
      if (reply.kind !== "reply" || reply.reply.kind !== "other") return false;
      return layout.isMixedUp(reply.reply.format, members.id);
    });
    return contradiction(mixedUp);
  }

  /**
   * Returns the longest life of a lease of this layout, or of any earlier layout that the nodes
   * store.
   */
  #waitMs(states: readonly LayoutState[]): number {
    const { options, layout } = this.#context;
    const known = states.flatMap((one) => (one.kind === "open" ? [] : [one]));
    const ttlMaxMs = Math.max(options.ttlMaxMs, ...known.map((one) => one.ttlMaxMs));
    return Math.max(layout.holdMs, quarantineMs(options, ttlMaxMs), ...known.map((k) => k.holdMs));
  }

  #waitFor(leftMs: number): Refusal {
    const { scheduler, events, layout } = this.#context;
    const about = `${Math.ceil(leftMs / 1_000)} s`;
    const refusal = this.#later(`leases of the one before may live for about ${about} more`);
    this.#pause = { untilMs: scheduler.clock.monotonicMs() + leftMs, refusal };
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      events.emit("warning", {
        level: "info",
        code: "layout-waits",
        what: `layout ${layout.version} replaces an older one in about ${about}`,
        why: "until then no node grants, so that no lease of the old groups meets one of the new",
        remedy: "nothing: waiting acquires go on by themselves; restart clients of the old groups",
      });
    }
    return refusal;
  }

  #later(why: string): Refusal {
    const { version } = this.#context.layout;
    return { error: new StoreError(`layout ${version} is not open yet: ${why}`), retryable: true };
  }

  #obstacle(answers: readonly Answer[]): Refusal | undefined {
    const other = contradiction(answers);
    if (other !== undefined) return { error: other, retryable: false };
    const silent = answers.filter(({ reply }) => reply.kind !== "reply");
    if (silent.length === 0) return undefined;
    const names = silent.map(({ node }) => node.name).join(", ");
    return this.#later(
      `${names} did not answer, and to open a layout every node is needed once, those of ` +
        "`retired` as well. A retired group whose servers are gone for good is given as []",
    );
  }

  #unspoken(missing: readonly string[]): StoreError {
    const { version } = this.#context.layout;
    const names = missing.map((id) => `"${id}"`).join(", ");
    return new StoreError(
      `the layout before ${version} has groups that are not in it: ${names}. Give the clients of ` +
        "their servers as `retired: { id: [client, …] }`, so that they can be closed first",
    );
  }

  async #sendAll(groups: readonly Members[], step: LayoutAct): Promise<Answer[]> {
    return (await Promise.all(groups.map((members) => this.#send(members, step)))).flat();
  }

  #send(members: Members, step: LayoutAct): Promise<Answer[]> {
    return sendStep(this.#context, members, step);
  }
}

function waitedMs(one: LayoutState): number {
  return one.kind === "open" ? Infinity : one.waitedMs;
}

function unreachable(
  answers: readonly Answer[],
  size: number,
  resources: readonly string[],
): Refusal {
  const votes = answers.map(({ node, reply }): Vote => {
    if (reply.kind === "reply") return { node: node.name, vote: "unknown", ms: 0 };
    const vote = reply.kind === "unknown" ? "unknown" : "failed";
    return { node: node.name, vote, ms: 0, cause: reply.error };
  });
  const cause = votes.find((one) => one.cause !== undefined)?.cause;
  const action = resources.length > 0 ? "acquire" : "reach the group";
  const error = new QuorumError(action, resources, votes, { quorum: size, cause });
  return { error, retryable: true };
}
