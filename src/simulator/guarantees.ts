import { admit } from "../stores/redis/scripts/generated.ts";
import type { Assumptions } from "./assumptions.ts";
import { ownerAndFence } from "./node/script-context.ts";
import { epochMs } from "./node/server.ts";
import type { SimulatedNode } from "./node/simulated-node.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { StorePlan } from "./scenario.ts";
import type { Scene } from "./scene.ts";

interface Loss {
  readonly atMs: number;
  readonly how: "restart" | "flush";
}

/**
 * Decides which faults break the assumptions of the protocol, and records these breaks.
 *
 * - Exclusion needs keys that live as long as their TTL. Overlaps of leases are excused for one TTL
 *   after a lock was evicted, a node's clock was set forward, or data was lost without admission.
 * - Fences need counters that never decrease on a node that votes. Fences of different epochs are
 *   not compared. Without admission, every loss of data starts a new epoch. With admission, only
 *   three cases start a new epoch: a clock step shortened a quarantine; all nodes were flushed; or
 *   a node was admitted by clocks alone (no node had data to copy) and the clocks differed too much
 *   for the quarantine. Delays, duplicates and early expiry never start a new epoch.
 */
export class Guarantees {
  readonly #scene: Scene;
  readonly #assumptions: Assumptions;
  readonly #plan: StorePlan;
  readonly #losses = new Map<SimulatedNode, Loss>();
  readonly #forwardSteps = new Map<SimulatedNode, number>();
  readonly #admissions = new Map<SimulatedNode, string>();
  readonly #suspends = new Map<SimulatedProcess, number>();
  readonly #setsBack = new Map<SimulatedProcess, number>();
  #greatestFence = 0;
  #greatestSkewMs = 0;

  constructor(scene: Scene, assumptions: Assumptions, plan: StorePlan) {
    this.#scene = scene;
    this.#assumptions = assumptions;
    this.#plan = plan;
  }

  onLoss(node: SimulatedNode, what: "restart" | "flush" | "locks", text: string): void {
    const { nowMs } = this.#scene;
    if (what !== "locks") this.#losses.set(node, { atMs: nowMs, how: what });
    if (what === "locks" || this.#plan.admission === "off") this.#excuseExclusion(text);
    if (what !== "locks" && this.#plan.admission === "off") {
      this.#assumptions.breakFences(nowMs, `${text}, without admission`);
    }
  }

  onNodeStep(node: SimulatedNode, byMs: number): void {
    if (byMs <= 0) return;
    this.#forwardSteps.set(node, this.#scene.nowMs);
    this.#excuseExclusion(`the clock of ${node.name} was set forward by ${Math.round(byMs)} ms`);
  }

  /**
   * Called when a suspend ends. A suspend and a step back of the wall clock cancel each other out
   * if the process does not read its clocks in between.
   */
  onSuspended(machine: SimulatedProcess): void {
    this.#suspends.set(machine, this.#scene.nowMs);
    this.#excuseFooled(machine, this.#setsBack);
  }

  onSetBack(machine: SimulatedProcess): void {
    this.#setsBack.set(machine, this.#scene.nowMs);
    this.#excuseFooled(machine, this.#suspends);
  }

  onClocks(machine: SimulatedProcess): void {
    const skewMs = machine.wallMs() - epochMs - this.#scene.nowMs;
    this.#greatestSkewMs = Math.max(this.#greatestSkewMs, Math.abs(skewMs));
  }

  onExecuted(node: SimulatedNode, command: readonly string[], reply: unknown): void {
    if (typeof reply === "string" && /^G( |$)/m.test(reply)) {
      for (const key of command.slice(3, 3 + Number(command[2]))) this.#noteFence(node, key);
    } else if (reply === "A" && (command[1] === admit.sha || command[1] === admit.source)) {
      const incarnation = command.slice(5, 7).join(" ");
      if (this.#admissions.get(node) === incarnation) return;
      this.#admissions.set(node, incarnation);
      this.#onAdmitted(node, command[4] ?? "");
    }
  }

  /** Records the fence of a grant, read from the key that the grant set. */
  #noteFence(node: SimulatedNode, key: string): void {
    const value = node.server.data.textOf(key);
    const fence = Number(value === undefined ? 0 : ownerAndFence(value).fence);
    if (fence > this.#greatestFence) this.#greatestFence = fence;
  }

  #onAdmitted(node: SimulatedNode, mode: string): void {
    const { nowMs } = this.#scene;
    this.#scene.add(node.name, "admitted", mode);
    const loss = this.#losses.get(node);
    if (loss === undefined || this.#greatestFence === 0) return;
    const stepped = (this.#forwardSteps.get(node) ?? -1) >= loss.atMs;
    if (stepped || (mode === "bootstrap" && loss.how === "flush")) {
      const why = stepped
        ? "a clock step cut its quarantine short"
        : "it was flushed, like all others";
      this.#assumptions.breakFences(nowMs, `${node.name}: ${why}`);
      this.#excuseExclusion(`${node.name}: ${why}`);
      return;
    }
    if (mode === "copy") return;
    const skewMs = Math.max(this.#greatestSkewMs, this.#greatestFence / 1_000 - epochMs - nowMs);
    // Admission by clocks alone is safe only if the quarantine is longer than the longest validity
    // plus twice the skew.
    const { maxTtlMs } = this.#plan;
    if (this.#quarantineMs() <= maxTtlMs + 2 * skewMs) {
      this.#assumptions.breakFences(nowMs, `${node.name} was admitted on clocks that are not good`);
    }
  }

  /**
   * Excuses overlaps if a suspend and a step back of the wall clock happened within the life of
   * one lease and without a clock reading in between. No clock then shows that the lease is over.
   */
  #excuseFooled(machine: SimulatedProcess, other: Map<SimulatedProcess, number>): void {
    const otherMs = other.get(machine);
    if (otherMs === undefined || machine.hasLookedSince(otherMs)) return;
    const apartMs = this.#scene.nowMs - otherMs;
    if (apartMs > 2 * this.#plan.maxTtlMs + machine.pausedMs()) return;
    this.#excuseExclusion(`${machine.name} was suspended, and its wall clock set back`);
  }

  #quarantineMs(): number {
    const { maxTtlMs, driftFactor, driftFixedMs } = this.#plan;
    return maxTtlMs + maxTtlMs * driftFactor + driftFixedMs;
  }

  #excuseExclusion(why: string): void {
    const { nowMs } = this.#scene;
    this.#assumptions.breakExclusion(nowMs, nowMs + this.#plan.maxTtlMs + 1, why);
  }
}
