import { ReplicationError } from "../../core/errors.ts";
import type { Scheduler, Task } from "../../core/scheduler.ts";
import type { ServerInfo } from "./doctor/server-info.ts";
import type { RedisNode } from "./node.ts";

/** Which process it was, and which line of writes it stood in. */
interface Identity {
  readonly runId: string | undefined;
  readonly replicationId: string | undefined;
}

export interface FailoverHost {
  readonly scheduler: Scheduler;
  /** Has the node asked for its INFO, which comes back to `observe`. */
  look(node: RedisNode): void;
  holdsAny(): boolean;
  onReplaced(node: RedisNode, cause: ReplicationError): void;
}

const pauseMsMax = 2_000;
const pauseMsMin = 100;

/**
 * Notices that another server answers as a node, or the same one with another history: after a
 * failover, a restart, a promotion and a demotion. What was granted before may be unknown there.
 *
 * A lease that is renewed would find out by itself; one that is not would be believed until its
 * end, so a single server is looked at from time to time while anything is held. It is a look, and
 * not a bound: what happens between two looks is known a little later.
 */
export class FailoverWatch {
  readonly #host: FailoverHost;
  readonly #known = new Map<RedisNode, Identity>();
  readonly #replicas = new Map<RedisNode, ReplicationError>();
  #pauseMs = pauseMsMax;
  #next: Task | undefined;
  #closed = false;

  constructor(host: FailoverHost) {
    this.#host = host;
  }

  /** Why a yes of this node proves nothing: a replica answers questions from an old copy. */
  doubtOf(node: RedisNode | undefined): ReplicationError | undefined {
    return node === undefined ? undefined : this.#replicas.get(node);
  }

  /** The process that was there first: it is compared with what the first look shows. */
  met(node: RedisNode): void {
    if (this.#known.has(node)) return;
    this.#known.set(node, { runId: node.runId, replicationId: undefined });
  }

  observe(node: RedisNode, { runId, replicationId, role }: ServerInfo): void {
    if (role === "replica") {
      if (this.#replicas.has(node)) return;
      const cause = new ReplicationError(
        "demoted",
        `${node.name} is a replica now: whether its master knows what was granted, nobody can tell`,
      );
      this.#replicas.set(node, cause);
      this.#host.onReplaced(node, cause);
      return;
    }
    this.#replicas.delete(node);
    // Before the first look only the process is known, and not its history.
    const known = this.#known.get(node) ?? { runId: node.runId, replicationId: undefined };
    this.#known.set(node, { runId, replicationId });
    const what = differs(known.runId, runId)
      ? "another process"
      : differs(known.replicationId, replicationId)
        ? "the same process with another replication id"
        : undefined;
    if (what === undefined) return;
    const why = `${what} answers as ${node.name}, after a failover or a restart`;
    this.#host.onReplaced(node, new ReplicationError("replaced", why));
  }

  /** A lease of `ttlMs` was granted: look at `node` from time to time while any is held. */
  pulse(node: RedisNode, ttlMs: number): void {
    const pauseMs = Math.max(pauseMsMin, Math.min(pauseMsMax, ttlMs / 4));
    if (this.#next !== undefined && pauseMs >= this.#pauseMs) return;
    this.#pauseMs = pauseMs;
    this.#arm(node);
  }

  close(): void {
    this.#closed = true;
    if (this.#next !== undefined) this.#host.scheduler.cancel(this.#next);
  }

  #arm(node: RedisNode): void {
    const { scheduler } = this.#host;
    if (this.#next !== undefined) scheduler.cancel(this.#next);
    if (this.#closed) return;
    this.#next = scheduler.at(scheduler.clock.monotonicMs() + this.#pauseMs, false, () => {
      this.#next = undefined;
      if (!this.#host.holdsAny()) return;
      this.#host.look(node);
      this.#arm(node);
    });
  }
}

function differs(known: string | undefined, seen: string | undefined): boolean {
  return known !== undefined && seen !== undefined && known !== seen;
}
