import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { Snapshot } from "./keyspace.ts";
import { SimulatedServer, type ServerPlan } from "./server.ts";

/** What of its data a node has after a crash. */
export type Kept = "all" | "snapshot" | "nothing";

/** Something that ends when its node does. */
export interface NodeClient {
  nodeCrashed(): void;
}

/** A connection that does nothing but listen. */
export interface NodeSubscriber extends NodeClient {
  listensTo(channel: string): boolean;
  published(channel: string, message: string): void;
}

/** One machine with a server on it, and what can befall it. */
export class SimulatedNode {
  readonly index: number;
  readonly name: string;
  readonly server: SimulatedServer;
  readonly clients: Set<NodeClient> = new Set();
  readonly subscribers: Set<NodeSubscriber> = new Set();
  readonly #scene: Scene;
  readonly #random: SeededRandom;
  #snapshot: Snapshot;
  #freezes = 0;
  #slowMs = 0;
  #queue: (() => void)[] = [];
  #downs = 0;
  /** Counts processes: a connection belongs to one of them. */
  #incarnation = 1;
  #silent = false;

  constructor(scene: Scene, index: number, plan: ServerPlan) {
    this.index = index;
    this.name = `node-${index + 1}`;
    this.#scene = scene;
    this.#random = scene.random.fork(this.name);
    this.server = new SimulatedServer(plan, {
      realMs: () => scene.nowMs,
      newRunId: () => this.#random.hex(40),
      publish: (channel, message) => {
        const listeners = this.#listenersOf(channel);
        for (const subscriber of listeners) subscriber.published(channel, message);
        return listeners.length;
      },
      listeners: (channel) => this.#listenersOf(channel).length,
    });
    this.#snapshot = this.server.data.snapshot();
  }

  #listenersOf(channel: string): NodeSubscriber[] {
    return [...this.subscribers].filter((subscriber) => subscriber.listensTo(channel));
  }

  get incarnation(): number {
    return this.#incarnation;
  }

  get isDown(): boolean {
    return this.#downs > 0;
  }

  /** Down, and its machine with it: nobody even refuses a connection. */
  get isSilent(): boolean {
    return this.isDown && this.#silent;
  }

  get isFrozen(): boolean {
    return this.#freezes > 0;
  }

  /** Hands `work` to the server, which does one thing after the other. Lost when it dies first. */
  serve(work: () => void): void {
    if (!this.isFrozen && this.#slowMs === 0 && this.#queue.length === 0) {
      work();
      return;
    }
    this.#queue.push(work);
    if (this.#queue.length === 1) this.#serveNext();
  }

  freeze(): void {
    this.#freezes += 1;
  }

  thaw(): void {
    this.#freezes = Math.max(0, this.#freezes - 1);
    if (this.#slowMs > 0) this.#serveNext();
    else this.#catchUp();
  }

  slowDown(byMs: number): void {
    this.#slowMs = byMs;
    this.#catchUp();
  }

  takeSnapshot(): void {
    if (!this.isDown) this.#snapshot = this.server.data.snapshot();
  }

  crash(silent: boolean): void {
    this.#downs += 1;
    if (this.#downs > 1) return;
    this.#incarnation += 1;
    this.#silent = silent;
    this.#queue = [];
    for (const subscriber of this.subscribers) subscriber.nodeCrashed();
    if (silent) return;
    for (const client of this.clients) client.nodeCrashed();
  }

  /** Returns whether the server is up again, which it is after the last of overlapping crashes. */
  restart(kept: Kept): boolean {
    this.#downs = Math.max(0, this.#downs - 1);
    if (this.isDown) return false;
    const data = kept === "all" ? this.server.data.snapshot() : this.#snapshot;
    this.server.restart(kept === "nothing" ? undefined : data);
    if (kept === "nothing") this.#snapshot = this.server.data.snapshot();
    return true;
  }

  /** Neither frozen nor slow any more: what has piled up is done at once. */
  #catchUp(): void {
    if (this.isFrozen || this.#slowMs > 0) return;
    const piled = this.#queue;
    this.#queue = [];
    for (const work of piled) work();
  }

  #serveNext(): void {
    const queue = this.#queue;
    const [first] = queue;
    if (first === undefined) return;
    this.#scene.after(this.#random.exponential(this.#slowMs), () => {
      // Done by a catching up, or lost in a crash, meanwhile.
      if (this.#queue !== queue || queue[0] !== first) return;
      // Frozen in the middle of its queue: the rest comes when it thaws.
      if (this.isFrozen) return;
      queue.shift();
      first();
      this.#serveNext();
    });
  }
}
