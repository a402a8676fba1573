import { ReplicationError } from "../../core/errors.ts";
import type { Instant } from "../../core/ports.ts";
import type { StoreContext } from "../../core/store.ts";
import { ClockWatch } from "../../core/time/clock-watch.ts";
import type { ServerObserver } from "./connection.ts";
import type { Failure } from "./faults.ts";
import type { PostgresGrant } from "./grant.ts";
import type { Reply } from "./operation.ts";

export const node = "postgres";

/** Change of the server's clock, besides drift, that is no step: timestamps are rounded. */
const fixedMs = 2;

/**
 * Watches the server through its replies: outages, steps of its clock, and a new generation, which
 * shows that the server was restarted, restored, or replaced by a promoted copy. A copy may lack
 * the latest grants, so every lease that an earlier generation granted is doubtful until it is
 * proven again. After a step forward, locks may have expired early, so every lease is lost.
 */
export class ServerWatch implements ServerObserver {
  readonly #context: StoreContext;
  #generation = 0n;
  #isFailing = false;
  readonly #clock: ClockWatch;
  /** Sum of the steps forward of the server's clock that were noticed, in ms. */
  steppedMs = 0;
  /** Last fault since the last reply. */
  lastFault: unknown = undefined;

  constructor(context: StoreContext, drift: number) {
    this.#context = context;
    this.#clock = new ClockWatch(context.runtime.clock, { factor: drift, fixedMs });
  }

  get generation(): bigint {
    return this.#generation;
  }

  onReply(reply: Reply, sent: Instant): void {
    const { events } = this.#context;
    const stamp = { runId: reply.generation, serverMs: reply.ms };
    const stepMs = this.#clock.observe(stamp, sent);
    if (stepMs !== 0) this.#onClockStep(stepMs);
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

  #onClockStep(stepMs: number): void {
    this.#context.events.emit("clock-jump", { node, stepMs });
    if (stepMs < 0) return;
    this.steppedMs += stepMs;
    this.#context.reconsider(() => "clock");
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
