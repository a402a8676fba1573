import type { Emitter } from "../../../core/events.ts";
import type { ClockWatch, Stamp } from "./clock-watch.ts";
import { clientIsOff } from "./mixed-admission.ts";
import { aboutNode } from "./node-finding.ts";
import type { RedisNode } from "./node.ts";
import type { ServerClocks } from "./server-clocks.ts";

/** Checks the stamp of every reply, and warns once per node if a clock or an admission is wrong. */
export class StampWatch {
  readonly #events: Emitter;
  readonly #clocks: ServerClocks;
  /**
   * True if this client has admission off. A reply then has a run id only if the record is strict.
   */
  readonly #isOff: boolean;
  readonly #strictNodes = new Set<RedisNode>();

  constructor(events: Emitter, clocks: ServerClocks, admission: "strict" | "off") {
    this.#events = events;
    this.#clocks = clocks;
    this.#isOff = admission === "off";
  }

  observe(node: RedisNode, { runId }: Stamp, watch: ClockWatch): void {
    this.#clocks.observe(node, watch);
    if (!this.#isOff || runId === "-" || this.#strictNodes.has(node)) return;
    this.#strictNodes.add(node);
    this.#events.emit("warning", aboutNode(node.name, clientIsOff));
  }
}
