import { InvalidOptionError, type HoldfastError } from "../../core/errors.ts";
import type { Scheduler } from "../../core/scheduler.ts";
import type { Survey } from "./doctor/survey.ts";
import type { RedisNode } from "./node.ts";
import type { Ballot } from "./quorum/ballot.ts";

interface Pair {
  readonly nodes: readonly [RedisNode, RedisNode];
  readonly error: HoldfastError;
}

interface TwinsHost {
  readonly nodes: readonly RedisNode[];
  readonly scheduler: Scheduler;
  /** Limit for asking both servers again. */
  readonly timeoutMs: number;
  /** Looks again at a node where a script ran in another process than the last look showed. */
  readonly survey: Pick<Survey, "noticeRunId">;
}

/**
 * A server that votes twice makes a majority of a minority: watches that all are different. What it
 * finds holds as long as the last known run ids are equal, so an address that was wrong for a
 * moment is forgiven once the node is connected to another server.
 */
export class Twins {
  readonly #host: TwinsHost;
  /** The process of each node, as its server reported it last. */
  readonly #reported: (string | undefined)[] = [];
  /** Which process last granted on each node, all of them different. */
  readonly #runIds: (string | undefined)[] = [];
  #found: Pair | undefined;
  #recheck: Promise<void> | undefined;

  constructor(host: TwinsHost) {
    this.#host = host;
  }

  /** The server of `node` reported its run id. Without one, the last known id stands. */
  observe(node: RedisNode, runId: string | undefined): void {
    const index = this.#host.nodes.indexOf(node);
    if (runId === undefined || this.#reported[index] === runId) return;
    this.#reported[index] = runId;
    const pair = this.#pair();
    if (pair?.error.message !== this.#found?.error.message) this.#found = pair;
  }

  /** Known from before, or among those that granted just now. */
  among(ballots: readonly Ballot[]): HoldfastError | undefined {
    return this.#found?.error ?? this.#sameRunId(ballots);
  }

  /** Asks both nodes that were found again. Bounded, never rejects. */
  recheck(): Promise<void> {
    this.#recheck ??= this.#askAgain().finally(() => {
      this.#recheck = undefined;
    });
    return this.#recheck;
  }

  async #askAgain(): Promise<void> {
    const { scheduler, timeoutMs } = this.#host;
    const asked = Promise.allSettled((this.#found?.nodes ?? []).map((node) => node.meet()));
    await new Promise<void>((resolve) => {
      const untilMs = scheduler.clock.monotonicMs() + timeoutMs;
      const timer = scheduler.at(untilMs, true, resolve);
      void asked.then(() => {
        scheduler.cancel(timer);
        resolve();
      });
    });
  }

  #pair(): Pair | undefined {
    const { nodes } = this.#host;
    for (const [index, runId] of this.#reported.entries()) {
      const first = runId === undefined ? index : this.#reported.indexOf(runId);
      const [one, other] = [nodes[index], nodes[first]];
      if (first === index || one === undefined || other === undefined) continue;
      return { nodes: [one, other], error: twinsError(one.name, other.name) };
    }
    return undefined;
  }

  #sameRunId(ballots: readonly Ballot[]): HoldfastError | undefined {
    // The same processes as the last time, which were found to be different.
    if (this.#areKnown(ballots)) return undefined;
    const { nodes } = this.#host;
    const seen = new Map<string, number>();
    for (const [index, { vote, runId }] of ballots.entries()) {
      if (vote !== "granted" || runId === undefined || runId === "-") continue;
      this.#host.survey.noticeRunId(nodes[index], runId);
      const twin = seen.get(runId);
      if (twin !== undefined) return twinsError(nodes[index]?.name, nodes[twin]?.name);
      seen.set(runId, index);
    }
    for (const [runId, index] of seen) {
      // One that another node had the last time is looked at again when that node grants.
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

function twinsError(one: string | undefined, other: string | undefined): HoldfastError {
  return new InvalidOptionError(
    "nodes",
    "different servers",
    `the same server twice, as ${other} and ${one}`,
  );
}
