import {
  NotConnectedError,
  type RedisConnection,
  type SubscriptionListener,
} from "../../clients/contract.ts";
import { ReplyError } from "../node/keyspace.ts";
import type { SimulatedNode } from "../node/simulated-node.ts";
import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { Scene } from "../scene.ts";
import type { ReceivedReply } from "../votes.ts";
import type { SeededRandom } from "../seeded-random.ts";
import { Connection, type Message } from "./connection.ts";
import { Listening } from "./listening.ts";

export interface LinkPlan {
  /** Mean delay of a message in one direction, without the extra delay `tailMs`. */
  readonly delayMs: number;
  /** Share of messages that take `tailMs` longer on average. */
  readonly tailChance: number;
  readonly tailMs: number;
  /** Share of commands in flight that still reach the node after their connection broke. */
  readonly strayChance: number;
  /** Mean additional delay of a command that arrives after its connection broke. */
  readonly strayMs: number;
  /** True if the driver sends unanswered commands again on the next connection. */
  readonly resends: boolean;
}

/** Callbacks of the world's checkers for each command. */
export interface LinkWatch {
  /**
   * Called when the process passed the command to the driver, even if the driver is not connected.
   */
  onSent(command: readonly string[]): void;
  /** Called before the node runs the command. */
  onExecuting(command: readonly string[]): void;
  /**
   * Called after the node ran the command. `isStray` is true if the connection was closed, so that
   * the client receives no reply.
   */
  onExecuted(command: readonly string[], reply: unknown, isStray: boolean): void;
  /** Called when the reply has arrived. The process handles it in a later microtask. */
  onReceived(received: ReceivedReply): void;
}

interface Answer {
  readonly connection: Connection;
  readonly message: Message;
  readonly reply: unknown;
  readonly executedMs: number;
}

/** Driver with which one client reaches one node. Its connection can break and reconnects. */
export class Link implements RedisConnection {
  readonly library = "simulated";
  readonly topology = "standalone";
  readonly machine: SimulatedProcess;
  readonly node: SimulatedNode;
  readonly #scene: Scene;
  readonly #plan: LinkPlan;
  readonly #random: SeededRandom;
  readonly #watch: LinkWatch;
  readonly #listening: Listening;
  readonly #unanswered: Message[] = [];
  #connection: Connection | undefined;
  #connectedSinceMs = Infinity;
  #cutsThere = 0;
  #cutsBack = 0;
  #lagMs = 0;
  #isCalm = false;

  constructor(
    scene: Scene,
    machine: SimulatedProcess,
    node: SimulatedNode,
    plan: LinkPlan,
    watch: LinkWatch,
  ) {
    this.#scene = scene;
    this.machine = machine;
    this.node = node;
    this.#plan = plan;
    this.#random = scene.random.fork(`${machine.name}-${node.name}`);
    this.#watch = watch;
    this.#listening = new Listening({
      scene,
      machine,
      node,
      random: this.#random.fork("listening"),
      isReachable: () => this.#isReachable,
      delayMs: () => this.#delayMs(),
    });
    this.#connectLater(this.#random.between(0, 5));
  }

  send(_key: string, command: readonly string[]): Promise<unknown> {
    this.#watch.onSent(command);
    const connection = this.#connection;
    if (connection === undefined) {
      return Promise.reject(new NotConnectedError(this.library, "reconnecting"));
    }
    return new Promise((resolve, reject) => {
      const sentMs = this.#scene.nowMs;
      this.#transmit(connection, { command, sentMs, resolve, reject, stray: false });
    });
  }

  line(): object | undefined {
    return this.#connection;
  }

  subscribe(channel: string, listener: SubscriptionListener): () => Promise<void> {
    return this.#listening.subscribe(channel, listener, this.#connection !== undefined);
  }

  /**
   * Cuts the network between process and node, in one or both directions: messages wait, without an
   * error, until `heal` delivers them.
   */
  cut(there: boolean, back: boolean): void {
    if (there) this.#cutsThere += 1;
    if (back) this.#cutsBack += 1;
    // Keep-alive, a proxy or a driver timeout closes some connections before the network heals.
    const connection = this.#connection;
    if (connection !== undefined && this.#random.chance(0.3)) {
      this.#scene.after(this.#random.exponential(500), () => {
        if (this.#cutsThere + this.#cutsBack > 0) this.#break(connection, "timed out");
      });
    }
  }

  heal(there: boolean, back: boolean): void {
    if (there) this.#cutsThere = Math.max(0, this.#cutsThere - 1);
    if (back) this.#cutsBack = Math.max(0, this.#cutsBack - 1);
    if (this.#cutsThere === 0) this.#connection?.releaseRequests((held) => this.#carry(held));
    if (this.#cutsBack === 0) this.#connection?.releaseReplies((held) => this.#bring(held));
  }

  /** Ends the random faults of this link: it is reliable from now on. */
  calm(): void {
    this.#isCalm = true;
    this.#listening.calm();
  }

  /** True if no command or reply is in flight. */
  get isIdle(): boolean {
    return (this.#connection?.pending.length ?? 0) === 0 && this.#unanswered.length === 0;
  }

  /** World's time at which the current connection was made. Infinity while not connected. */
  get connectedSinceMs(): number {
    return this.#connection === undefined ? Infinity : this.#connectedSinceMs;
  }

  lag(byMs: number): void {
    this.#lagMs = byMs;
  }

  /** Resets the connection. Both sides detect the reset at once. */
  break(): void {
    if (this.#connection !== undefined) this.#break(this.#connection, "reset");
  }

  /** Called when the process crashed. Drops replies; commands in flight may still arrive. */
  abandon(): void {
    if (this.#connection !== undefined) this.#close(this.#connection);
    this.#unanswered.length = 0;
    this.#listening.abandon();
  }

  get #isReachable(): boolean {
    const { isDown, isFrozen } = this.node;
    return !isDown && !isFrozen && this.#cutsThere === 0 && this.#cutsBack === 0;
  }

  #transmit(connection: Connection, message: Message): void {
    connection.pending.push(message);
    if (this.#cutsThere > 0) connection.heldRequests.push(message);
    else this.#carry({ connection, message });
  }

  #carry(sent: { connection: Connection; message: Message }): void {
    const { connection, message } = sent;
    const arrivesMs = connection.nextArrival(this.#scene.nowMs + this.#delayMs());
    this.#scene.after(arrivesMs - this.#scene.nowMs, () => this.#arrive(connection, message));
  }

  #arrive(connection: Connection, message: Message): void {
    if (!connection.open) {
      if (!message.stray) return;
      // The message was buffered on the way and arrives after its connection closed.
      message.stray = false;
      this.#scene.after(this.#random.exponential(this.#plan.strayMs), () =>
        this.#reach(connection, message),
      );
      return;
    }
    this.#reach(connection, message);
  }

  #reach(connection: Connection, message: Message): void {
    const { node } = this;
    if (node.isSilent) return;
    if (node.isDown || connection.incarnation !== node.incarnation) {
      this.#break(connection, "refused");
      return;
    }
    node.serve(() => this.#execute(connection, message));
  }

  #execute(connection: Connection, message: Message): void {
    const { node } = this;
    let reply: unknown;
    this.#watch.onExecuting(message.command);
    try {
      reply = node.server.execute(message.command);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      reply = error;
    }
    this.#watch.onExecuted(message.command, reply, !connection.open);
    if (!connection.open) return;
    const executedMs = this.#scene.nowMs;
    if (this.#cutsBack > 0) connection.heldReplies.push({ message, reply, executedMs });
    else this.#bring({ connection, message, reply, executedMs });
  }

  #bring({ connection, message, reply, executedMs }: Answer): void {
    const arrivesMs = connection.nextReply(this.#scene.nowMs + this.#delayMs());
    this.#scene.after(arrivesMs - this.#scene.nowMs, () => {
      if (!connection.open || !connection.settled(message)) return;
      this.machine.enter("network", () => {
        if (reply instanceof Error) message.reject(reply);
        else message.resolve(reply);
        const { incarnation } = connection;
        const { command, sentMs } = message;
        this.#watch.onReceived({ command, incarnation, sentMs, executedMs, reply });
      });
    });
  }

  #break(connection: Connection, why: string): void {
    if (!connection.open) return;
    this.#close(connection);
    this.#scene.add(this.machine.name, "disconnected", `${this.node.name}: ${why}`);
    for (const message of connection.pending) {
      if (this.#plan.resends) this.#unanswered.push(message);
      else {
        const error = new Error(`the connection to ${this.node.name} was lost (${why})`);
        this.machine.enter("network", () => message.reject(error));
      }
    }
    this.#connectLater(this.#random.between(1, 60));
  }

  #close(connection: Connection): void {
    connection.open = false;
    this.node.clients.delete(connection);
    if (this.#connection === connection) this.#connection = undefined;
    for (const message of connection.pending) {
      message.stray = this.#random.chance(this.#plan.strayChance);
    }
  }

  #connectLater(delayMs: number): void {
    this.#scene.after(delayMs, () => {
      if (this.machine.hasCrashed) return;
      const { node } = this;
      // A driver is connected only after the reply to its handshake, so the node must be reachable.
      if (!this.#isReachable) return this.#connectLater(this.#random.between(5, 60));
      const connection = new Connection(node.incarnation, (ended) => this.#break(ended, "closed"));
      this.#connection = connection;
      this.#connectedSinceMs = this.#scene.nowMs;
      node.clients.add(connection);
      for (const message of this.#unanswered.splice(0)) {
        this.#transmit(connection, { ...message, stray: false });
      }
    });
  }

  #delayMs(): number {
    if (this.#isCalm) return this.#random.between(0.2, 1);
    const { delayMs, tailChance, tailMs } = this.#plan;
    const tail = this.#random.chance(tailChance) ? this.#random.exponential(tailMs) : 0;
    const lag = this.#lagMs > 0 ? this.#random.exponential(this.#lagMs) : 0;
    return delayMs / 2 + this.#random.exponential(delayMs / 2) + tail + lag;
  }
}
