import { InvalidOptionError, type HoldfastError } from "../../core/errors.ts";
import type { RedisNode } from "./node.ts";
import type { Ballot } from "./quorum/ballot.ts";

/** A server that votes twice makes a majority of a minority: watches that all are different. */
export class Twins {
  readonly #nodes: readonly RedisNode[];
  readonly #noticeRunId: (node: RedisNode | undefined, runId: string) => void;
  /** Which process last granted on each node, all of them different. */
  readonly #runIds: (string | undefined)[] = [];
  #found: HoldfastError | undefined;

  constructor(
    nodes: readonly RedisNode[],
    noticeRunId: (node: RedisNode | undefined, runId: string) => void,
  ) {
    this.#nodes = nodes;
    this.#noticeRunId = noticeRunId;
  }

  introduced(node: RedisNode): void {
    const { runId } = node;
    if (runId === undefined) return;
    const twin = this.#nodes.find((other) => other !== node && other.runId === runId);
    if (twin !== undefined) this.#found = twinsError(node.name, twin.name);
  }

  /** Known from before, or among those that granted just now. */
  among(ballots: readonly Ballot[]): HoldfastError | undefined {
    return this.#found ?? this.#sameRunId(ballots);
  }

  #sameRunId(ballots: readonly Ballot[]): HoldfastError | undefined {
    // The same processes as the last time, which were found to be different.
    if (this.#areKnown(ballots)) return undefined;
    const seen = new Map<string, number>();
    for (const [index, { vote, runId }] of ballots.entries()) {
      if (vote !== "granted" || runId === undefined || runId === "-") continue;
      this.#noticeRunId(this.#nodes[index], runId);
      const twin = seen.get(runId);
      if (twin !== undefined) return twinsError(this.#nodes[index]?.name, this.#nodes[twin]?.name);
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
