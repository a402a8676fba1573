import { NotConnectedError, type SubscriptionListener } from "../../clients/contract.ts";
import type { NodeSubscriber, SimulatedNode } from "../node/simulated-node.ts";
import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";

export interface ListeningPorts {
  readonly scene: Scene;
  readonly machine: SimulatedProcess;
  readonly node: SimulatedNode;
  readonly random: SeededRandom;
  /** True if messages can pass in both directions. */
  readonly isReachable: () => boolean;
  readonly delayMs: () => number;
}

/** Share of messages that are lost although the subscription exists. */
const lossChance = 0.02;

/** Share of subscribe requests that get no reply. */
const muteChance = 0.02;

/**
 * Second connection of a driver, for subscriptions only. It breaks when its node crashes or at
 * random, and its subscriptions end with it. The process detects the end later than the server.
 */
export class Listening implements NodeSubscriber {
  readonly #ports: ListeningPorts;
  readonly #channels = new Map<string, Set<SubscriptionListener>>();
  #isCalm = false;

  constructor(ports: ListeningPorts) {
    this.#ports = ports;
  }

  subscribe(
    channel: string,
    listener: SubscriptionListener,
    isConnected: boolean,
  ): () => Promise<void> {
    const { random, delayMs, isReachable } = this.#ports;
    let isWanted = true;
    let joined: Set<SubscriptionListener> | undefined;
    const isMute = !this.#isCalm && random.chance(muteChance);
    this.#later(delayMs() + delayMs(), () => {
      if (!isWanted || (isConnected && isMute)) return;
      if (!isConnected || !isReachable()) {
        isWanted = false;
        listener.onLost(new NotConnectedError("simulated", "reconnecting"));
        return;
      }
      const listeners = this.#channels.get(channel) ?? new Set();
      this.#channels.set(channel, listeners);
      joined = listeners.add(listener);
      this.#ports.node.subscribers.add(this);
      listener.onReady();
    });
    return () => {
      isWanted = false;
      joined?.delete(listener);
      if (this.#channels.get(channel)?.size === 0) this.#channels.delete(channel);
      return Promise.resolve();
    };
  }

  listensTo(channel: string): boolean {
    return this.#channels.has(channel);
  }

  published(channel: string, message: string): void {
    const { random, isReachable, delayMs } = this.#ports;
    if (!isReachable()) return;
    if (!this.#isCalm && random.chance(lossChance)) {
      // Half of the lost messages are lost because the connection breaks.
      if (random.chance(0.5)) this.nodeCrashed();
      return;
    }
    const listeners = this.#channels.get(channel);
    this.#later(delayMs(), () => {
      for (const listener of listeners ?? []) listener.onMessage(message);
    });
  }

  nodeCrashed(): void {
    const { node, random } = this.#ports;
    node.subscribers.delete(this);
    const lost = [...this.#channels.values()];
    this.#channels.clear();
    this.#later(random.between(5, 100), () => {
      for (const listeners of lost) {
        for (const listener of listeners) {
          listener.onLost(new Error("the connection of the subscriber ended"));
        }
        listeners.clear();
      }
    });
  }

  calm(): void {
    this.#isCalm = true;
  }

  /** Called when the process crashed. */
  abandon(): void {
    this.#channels.clear();
    this.#ports.node.subscribers.delete(this);
  }

  #later(delayMs: number, run: () => void): void {
    const { scene, machine } = this.#ports;
    scene.after(delayMs, () => machine.enter("network", run));
  }
}
