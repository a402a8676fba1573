import { ReplicationError } from "../../core/errors.ts";
import type { Instant } from "../../core/ports.ts";
import type { StoreContext } from "../../core/store.ts";
import type { ServerObserver } from "./connection.ts";
import type { Failure } from "./faults.ts";
import type { PostgresGrant } from "./grant.ts";
import type { Reply } from "./operation.ts";

export const node = "postgres";

/**
 * Watches the server through its replies: outages, and a new generation, which shows that the
 * server was restarted, restored, or replaced by a promoted copy. A copy may lack the latest
 * grants, so every lease that an earlier generation granted is doubtful until it is proven again.
 */
export class ServerWatch implements ServerObserver {
  readonly #context: StoreContext;
  #generation = 0n;
  #isFailing = false;
  /** Last fault since the last reply. */
  lastFault: unknown = undefined;

  constructor(context: StoreContext) {
    this.#context = context;
  }

  get generation(): bigint {
    return this.#generation;
  }

  onReply(reply: Reply, _sent: Instant): void {
    const { events } = this.#context;
    this.lastFault = undefined;
    if (this.#isFailing) {
      this.#isFailing = false;
      events.emit("node-recovered", { node });
    }
    const generation = BigInt(reply.generation);
    if (generation <= this.#generation) return;
    const isFirst = this.#generation === 0n;
    this.#generation = generation;
    if (isFirst) return;
    const why = "Postgres was restarted, or another server has taken its place";
    const cause = new ReplicationError("replaced", why);
    events.emit("node-replaced", { node, why });
    this.#context.doubt((grant) => {
      return (grant as PostgresGrant).generation < generation ? cause : undefined;
    });
  }

  onFailure({ error, conflict, certain }: Failure): void {
    if (conflict) return;
    this.lastFault = error;
    if (this.#isFailing) return;
    this.#isFailing = true;
    const vote = certain ? "failed" : "unknown";
    this.#context.events.emit("node-failed", { node, vote, cause: error });
  }
}
