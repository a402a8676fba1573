import { InvalidOptionError, type HoldfastError } from "../../../core/errors.ts";
import type { Scheduler } from "../../../core/time/scheduler.ts";
import type { Survey } from "../node/survey.ts";
import type { NodeObserver, RedisNode } from "../node/node.ts";
import type { ServerInfo } from "../node/server-info.ts";
import type { Ballot } from "./ballot.ts";
import { indicesIn, type NodeSet } from "./node-set.ts";

/** Two nodes that have the same server. */
type Pair = readonly [RedisNode, RedisNode];

interface DuplicateServersContext {
  readonly nodes: readonly RedisNode[];
  readonly scheduler: Scheduler;
  /** Limit for the requests of a recheck. */
  readonly timeoutMs: number;
  /** Sends INFO to a node if a script ran in another process than the last INFO showed. */
  readonly survey: Pick<Survey, "noticeRunId">;
}

/**
 * Detects that one server was given as two nodes: its two votes could turn a minority of servers
 * into a quorum. The error remains while the last known run ids are equal. It ends when one of the
 * two nodes is connected to another server, for example after an address was wrong for a moment.
 */
export class DuplicateServers implements NodeObserver {
  readonly #context: DuplicateServersContext;
  /** Run id of each node's server, as INFO reported it last. */
  readonly #reported: (string | undefined)[] = [];
  /** Run id of the process that sent the last grant of each node. All ids are different. */
  readonly #runIds: (string | undefined)[] = [];
  /** Error that is set while one server is known to be two nodes. */
  setupError: HoldfastError | undefined = undefined;
  #found: Pair | undefined;
  #recheck: Promise<void> | undefined;

  constructor(context: DuplicateServersContext) {
    this.#context = context;
  }

  onIdentified(node: RedisNode): void {
    this.#observe(node, node.runId);
  }

  onInfo(node: RedisNode, { runId }: ServerInfo): void {
    this.#observe(node, runId);
  }

  /**
   * Called with the run id in an INFO reply of `node`. If it is undefined, the last known id
   * remains.
   */
  #observe(node: RedisNode, runId: string | undefined): void {
    const index = this.#context.nodes.indexOf(node);
    if (runId === undefined || this.#reported[index] === runId) return;
    this.#reported[index] = runId;
    const pair = this.#pair();
    if (pair?.[0] === this.#found?.[0] && pair?.[1] === this.#found?.[1]) return;
    this.#found = pair;
    this.setupError = pair === undefined ? undefined : sameServerError(pair[0].name, pair[1].name);
  }

  /** Returns `setupError` if it is set, or an error if two of these grants come from one server. */
  check(ballots: readonly Ballot[]): HoldfastError | undefined {
    return this.setupError ?? this.#sameRunId(ballots);
  }

  /** Returns `votes` with only the first of several nodes that have the same server. */
  distinct(votes: NodeSet): NodeSet {
    if (this.#found === undefined) return votes;
    let kept = votes;
    const seen = new Set<string>();
    for (const index of indicesIn(votes)) {
      const runId = this.#reported[index];
      if (runId === undefined) continue;
      if (seen.has(runId)) kept &= ~(1 << index);
      seen.add(runId);
    }
    return kept;
  }

  /** Sends INFO again to both nodes of the error. Ends within `timeoutMs`, and never rejects. */
  recheck(): Promise<void> {
    this.#recheck ??= this.#sendAgain().finally(() => {
      this.#recheck = undefined;
    });
    return this.#recheck;
  }

  async #sendAgain(): Promise<void> {
    const { scheduler, timeoutMs } = this.#context;
    const replies = Promise.allSettled((this.#found ?? []).map((node) => node.identify()));
    await new Promise<void>((resolve) => {
      const untilMs = scheduler.clock.monotonicMs() + timeoutMs;
      const timer = scheduler.at(untilMs, true, resolve);
      void replies.then(() => {
        scheduler.cancel(timer);
        resolve();
      });
    });
  }

  #pair(): Pair | undefined {
    const { nodes } = this.#context;
    for (const [index, runId] of this.#reported.entries()) {
      const first = runId === undefined ? index : this.#reported.indexOf(runId);
      const [one, other] = [nodes[index], nodes[first]];
      if (first === index || one === undefined || other === undefined) continue;
      return [one, other];
    }
    return undefined;
  }

  #sameRunId(ballots: readonly Ballot[]): HoldfastError | undefined {
    // perf (sequential): these run ids are those of earlier grants, which are known to be
    // different.
    if (this.#areKnown(ballots)) return undefined;
    const { nodes } = this.#context;
    const seen = new Map<string, number>();
    for (const [index, { vote, runId }] of ballots.entries()) {
      if (vote !== "granted" || runId === undefined || runId === "-") continue;
      this.#context.survey.noticeRunId(nodes[index], runId);
      const twin = seen.get(runId);
      if (twin !== undefined) return sameServerError(nodes[index]?.name, nodes[twin]?.name);
      seen.set(runId, index);
    }
    for (const [runId, index] of seen) {
      // Removes the id from the node that had it before, so that this node is checked at its next
      // grant.
      const before = this.#runIds.indexOf(runId);
      if (before >= 0) this.#runIds[before] = undefined;
      this.#runIds[index] = runId;
    }
    return undefined;
  }

  #areKnown(ballots: readonly Ballot[]): boolean {
    for (let index = 0; index < ballots.length; index += 1) {
      const ballot = ballots[index];
      if (ballot?.vote !== "granted" || ballot.runId === undefined) continue;
      if (ballot.runId !== "-" && ballot.runId !== this.#runIds[index]) return false;
    }
    return true;
  }
}

function sameServerError(one: string | undefined, other: string | undefined): HoldfastError {
  return new InvalidOptionError(
    "nodes",
    "different servers",
    `the same server twice, as ${other} and ${one}`,
  );
}
