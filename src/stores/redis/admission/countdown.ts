import type { Emitter } from "../../../core/events.ts";
import type { Finding } from "../../../core/report/doctor.ts";
import type { Clock } from "../../../core/ports.ts";
import type { VoteCountdown } from "../protocol/quorum.ts";
import type { StoreSettings } from "../protocol/store-settings.ts";
import type { Admission } from "./admission.ts";
import { whenLeft } from "./admission-rule.ts";

export interface CountdownContext {
  readonly nodes: readonly unknown[];
  readonly size: number;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly options: Pick<StoreSettings, "ttlMaxMs">;
}

/** Countdown of new nodes until a quorum may vote. Reports it once. */
export class Countdown implements VoteCountdown {
  readonly #context: CountdownContext;
  readonly #admission: Pick<Admission, "state">;
  /** End of the countdown that was reported last. */
  #reportedUntilMs = -Infinity;

  constructor(context: CountdownContext, admission: Pick<Admission, "state">) {
    this.#context = context;
    this.#admission = admission;
  }

  leftMs(): number | undefined {
    const { nodes, size, clock, events, options } = this.#context;
    const states = nodes.map((_, index) => this.#admission.state(index));
    const admitted = states.filter(({ kind }) => kind === "admitted").length;
    const ends = states.flatMap((one) => (one.kind === "quarantined" ? [one.untilMs] : []));
    const untilMs = ends.toSorted((one, other) => one - other)[size - admitted - 1];
    if (untilMs === undefined || !Number.isFinite(untilMs)) return undefined;
    const leftMs = Math.max(0, untilMs - clock.monotonicMs());
    // The end moves a little with each reply. If the nodes lose their data again, it is much later.
    if (untilMs > this.#reportedUntilMs + options.ttlMaxMs / 2) {
      this.#reportedUntilMs = untilMs;
      events.emit("warning", this.#finding(leftMs));
    }
    return leftMs;
  }

  #finding(leftMs: number): Finding {
    const seconds = this.#context.options.ttlMaxMs / 1_000;
    return {
      level: "warning",
      code: "admission-countdown",
      what: `too few nodes may vote: they are new, or have lost their data; ${whenLeft(leftMs)}`,
      why: `a node votes when the leases that it may have forgotten are over: maxTtl, ${seconds} s`,
      remedy:
        'wait; a call without a `wait` of its own does. In tests set maxTtl: "2s", the same on ' +
        "every client",
    };
  }
}
