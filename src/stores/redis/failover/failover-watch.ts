import { ReplicationError } from "../../../core/errors.ts";
import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import type { NodeObserver, RedisNode } from "../node/node.ts";
import type { ServerInfo } from "../node/server-info.ts";
import type { Survey } from "../node/survey.ts";
import type { GrantObserver } from "../protocol/quorum.ts";
import type { HeldGrants } from "./held-grants.ts";

/** Process and replication history of a server. */
interface Identity {
  readonly runId: string | undefined;
  readonly replicationId: string | undefined;
}

interface FailoverContext {
  readonly scheduler: Scheduler;
  readonly survey: Survey;
  readonly held: HeldGrants;
  /** The only node of a store; undefined if it has several. */
  readonly only: RedisNode | undefined;
}

const pauseMsMax = 2_000;
const pauseMsMin = 100;

/**
 * Detects that another server replies for a node, or the same server with another replication
 * history: after a failover, a restart, a promotion or a demotion. Such a server may lack earlier
 * grants.
 *
 * A renewal would show the change, but a lease without renewals would count as held until its end.
 * So a store with a single server sends INFO at intervals while a lease is held. A change between
 * two requests is noticed at the second one.
 */
export class FailoverWatch implements NodeObserver, GrantObserver {
  readonly #context: FailoverContext;
  readonly #known = new Map<RedisNode, Identity>();
  readonly #replicas = new Map<RedisNode, ReplicationError>();
  #pauseMs = pauseMsMax;
  #next: Task | undefined;
  #closed = false;

  constructor(context: FailoverContext) {
    this.#context = context;
  }

  /**
   * Returns an error if confirmations of this node prove nothing, because its server is a replica
   * and may have an old copy of the data.
   */
  doubtOf(node: RedisNode | undefined): ReplicationError | undefined {
    return node === undefined ? undefined : this.#replicas.get(node);
  }

  /** Stores the run id of the node's first process, for the comparison with the first INFO. */
  onIdentified(node: RedisNode): void {
    if (this.#known.has(node)) return;
    this.#known.set(node, { runId: node.runId, replicationId: undefined });
  }

  onInfo(node: RedisNode, { runId, replicationId, role }: ServerInfo): void {
    if (role === "replica") {
      if (this.#replicas.has(node)) return;
      const cause = new ReplicationError(
        "demoted",
        `${node.name} is a replica now: it is unknown whether its master has what was granted`,
      );
      this.#replicas.set(node, cause);
      this.#context.held.onReplaced(node, cause);
      return;
    }
    this.#replicas.delete(node);
    // Before the first INFO only the run id is known, and not the replication id.
    const known = this.#known.get(node) ?? { runId: node.runId, replicationId: undefined };
    this.#known.set(node, { runId, replicationId });
    const what = differs(known.runId, runId)
      ? "another process"
      : differs(known.replicationId, replicationId)
        ? "the same process with another replication id"
        : undefined;
    if (what === undefined) return;
    const why = `${what} answers as ${node.name}, after a failover or a restart`;
    this.#context.held.onReplaced(node, new ReplicationError("replaced", why));
  }

  /**
   * Called when a lease of `ttlMs` was granted: sends INFO at intervals while any lease is held.
   */
  onGranted(ttlMs: number): void {
    const pauseMs = Math.max(pauseMsMin, Math.min(pauseMsMax, ttlMs / 4));
    if (this.#next !== undefined && pauseMs >= this.#pauseMs) return;
    this.#pauseMs = pauseMs;
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    if (this.#next !== undefined) this.#context.scheduler.cancel(this.#next);
  }

  #arm(): void {
    const { scheduler, survey, held, only } = this.#context;
    if (this.#next !== undefined) scheduler.cancel(this.#next);
    if (this.#closed) return;
    this.#next = scheduler.at(scheduler.clock.monotonicMs() + this.#pauseMs, false, () => {
      this.#next = undefined;
      if (!held.any) return;
      survey.look(only);
      this.#arm();
    });
  }
}

function differs(known: string | undefined, seen: string | undefined): boolean {
  return known !== undefined && seen !== undefined && known !== seen;
}
