import { NotConnectedError } from "../../clients/contract.ts";
import type { NodeSubscriber, SimulatedNode } from "../node/simulated-node.ts";
import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";

type Listener = (message: string) => void;

export interface ListeningPorts {
  readonly scene: Scene;
  readonly machine: SimulatedProcess;
  readonly node: SimulatedNode;
  readonly random: SeededRandom;
  /** Whether the way to the node and back is open. */
  readonly isReachable: () => boolean;
  readonly delayMs: () => number;
}

/** Share of messages that get lost on the way, as they do while a driver dials again. */
const lossChance = 0.02;

/**
 * The second connection of a driver, which only listens. It breaks without a word, if only because
 * its node dies, is dialled again, and hears nothing of what was said in between.
 */
export class Listening implements NodeSubscriber {
  readonly #ports: ListeningPorts;
  readonly #channels = new Map<string, Set<Listener>>();
  #incarnation = 0;
  #isCalm = false;

  constructor(ports: ListeningPorts) {
    this.#ports = ports;
  }

  subscribe(channel: string, listener: Listener): Promise<() => Promise<void>> {
    const { scene, machine, isReachable, delayMs } = this.#ports;
    return new Promise((resolve, reject) => {
      scene.after(delayMs() + delayMs(), () => {
        machine.enter("network", () => {
          if (!isReachable()) return reject(new NotConnectedError("simulated", "reconnecting"));
          const listeners = this.#channels.get(channel) ?? new Set();
          this.#channels.set(channel, listeners);
          listeners.add(listener);
          this.#connect();
          resolve(() => {
            listeners.delete(listener);
            if (listeners.size === 0) this.#channels.delete(channel);
            return Promise.resolve();
          });
        });
      });
    });
  }

  listensTo(channel: string): boolean {
    return this.#channels.has(channel);
  }

  published(channel: string, message: string): void {
    const { scene, machine, random, isReachable, delayMs } = this.#ports;
    if (!isReachable()) return;
    if (!this.#isCalm && random.chance(lossChance)) {
      // Some are lost with the connection, which the server may notice before the process does.
      if (random.chance(0.5)) this.nodeCrashed();
      return;
    }
    scene.after(delayMs(), () => {
      machine.enter("network", () => {
        for (const listener of this.#channels.get(channel) ?? []) listener(message);
      });
    });
  }

  nodeCrashed(): void {
    this.#ports.node.subscribers.delete(this);
    this.#connectLater();
  }

  calm(): void {
    this.#isCalm = true;
  }

  /** The process is gone. */
  abandon(): void {
    this.#channels.clear();
    this.#ports.node.subscribers.delete(this);
  }

  #connect(): void {
    const { node } = this.#ports;
    this.#incarnation = node.incarnation;
    node.subscribers.add(this);
  }

  #connectLater(): void {
    const { scene, machine, node, random, isReachable } = this.#ports;
    scene.after(random.between(5, 100), () => {
      if (machine.hasCrashed || this.#channels.size === 0) return;
      if (this.#incarnation === node.incarnation && node.subscribers.has(this)) return;
      if (isReachable()) this.#connect();
      else this.#connectLater();
    });
  }
}
