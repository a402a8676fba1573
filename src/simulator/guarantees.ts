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
 * Keeps the books on what a world did to the protocol's assumptions. The rules, in the protocol's
 * own terms:
 *
 * - Exclusion needs keys that live as long as their TTL. Evicting a lock, setting a node's clock
 *   forward, and a loss of data that admission does not sit out, excuse it for one TTL.
 * - Fences need counters that never fall on a node that votes. Without admission, any loss of data
 *   begins a new epoch. With it, only an admission on clocks alone does (total loss, or nobody to
 *   copy from), where the clocks are not good enough for the time that was waited; or a quarantine
 *   that a clock step cut short. Nothing else: no delay, no duplicate, no early expiry.
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

  /** A suspend and a step back between two looks at the clocks hide each other. */
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
    const replies: readonly unknown[] = Array.isArray(reply) ? reply : [reply];
    if (replies.some((each) => typeof each === "string" && /^G( |$)/.test(each))) {
      for (const key of command.slice(3, 3 + Number(command[2]))) this.#noteFence(node, key);
    } else if (reply === "A" && (command[1] === admit.sha || command[1] === admit.source)) {
      const incarnation = command.slice(5, 7).join(" ");
      if (this.#admissions.get(node) === incarnation) return;
      this.#admissions.set(node, incarnation);
      this.#onAdmitted(node, command[4] ?? "");
    }
  }

  /** Of a grant, by the key that it set. */
  #noteFence(node: SimulatedNode, key: string): void {
    const value = node.server.data.textOf(key);
    const fence = Number(value === undefined ? 0 : ownerAndFence(value).fence);
    if (fence > this.#greatestFence) this.#greatestFence = fence;
  }

  #onAdmitted(node: SimulatedNode, mode: string): void {
    const { nowMs } = this.#scene;
    this.#scene.tell(node.name, "admitted", mode);
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
    // What the wait must exceed for clocks to do: the longest validity, and twice the skew.
    const { ttlMaxMs } = this.#plan;
    if (this.#quarantineMs() <= ttlMaxMs + 2 * skewMs) {
      this.#assumptions.breakFences(nowMs, `${node.name} was admitted on clocks that are not good`);
    }
  }

  /** Both within the life of one lease, and unseen: no clock is left to show that it is over. */
  #excuseFooled(machine: SimulatedProcess, other: Map<SimulatedProcess, number>): void {
    const otherMs = other.get(machine);
    if (otherMs === undefined || machine.hasLookedSince(otherMs)) return;
    const apartMs = this.#scene.nowMs - otherMs;
    if (apartMs > 2 * this.#plan.ttlMaxMs + machine.pausedMs()) return;
    this.#excuseExclusion(`${machine.name} was suspended, and its wall clock set back`);
  }

  #quarantineMs(): number {
    const { ttlMaxMs, driftFactor, driftFixedMs } = this.#plan;
    return ttlMaxMs + ttlMaxMs * driftFactor + driftFixedMs;
  }

  #excuseExclusion(why: string): void {
    const { nowMs } = this.#scene;
    this.#assumptions.breakExclusion(nowMs, nowMs + this.#plan.ttlMaxMs + 1, why);
  }
}
