import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { Snapshot } from "./keyspace.ts";
import { SimulatedServer, type ServerPlan } from "./server.ts";

/** Data that a node still has after a crash. */
export type Kept = "all" | "snapshot" | "nothing";

/** Connection that is notified when its node crashes. */
export interface NodeClient {
  nodeCrashed(): void;
}

/** Connection that only receives published messages. */
export interface NodeSubscriber extends NodeClient {
  listensTo(channel: string): boolean;
  published(channel: string, message: string): void;
}

/** Machine that runs one server, with methods for its faults. */
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
  /** Number of the current server process. Each connection belongs to one process. */
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

  /** True if the whole machine is down, so that it does not even refuse connections. */
  get isSilent(): boolean {
    return this.isDown && this.#silent;
  }

  get isFrozen(): boolean {
    return this.#freezes > 0;
  }

  /**
   * Runs `work` now, or queues it while the server is frozen or slow. A crash of the server drops
   * the queued work.
   */
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

  /** Ends one crash. Returns true if the server runs again, false if another crash still lasts. */
  restart(kept: Kept): boolean {
    this.#downs = Math.max(0, this.#downs - 1);
    if (this.isDown) return false;
    const data = kept === "all" ? this.server.data.snapshot() : this.#snapshot;
    this.server.restart(kept === "nothing" ? undefined : data);
    if (kept === "nothing") this.#snapshot = this.server.data.snapshot();
    return true;
  }

  /** Runs all queued work at once if the server is neither frozen nor slow any more. */
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
      // `#catchUp` has run this work meanwhile, or a crash has dropped it.
      if (this.#queue !== queue || queue[0] !== first) return;
      // The server is frozen again: `thaw` continues with the queue.
      if (this.isFrozen) return;
      queue.shift();
      first();
      this.#serveNext();
    });
  }
}
