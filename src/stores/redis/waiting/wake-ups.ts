import type { Clock } from "../../../core/ports.ts";
import type { Scheduler, Task } from "../../../core/scheduler.ts";
import type { RedisNode } from "../node.ts";

/** A subscription is kept this long after the last waiter, for the next is often soon to come. */
const lingerMs = 5_000;

interface Channel {
  readonly name: string;
  users: number;
  /** One for each node; undefined where it could not be opened, or is being opened. */
  readonly subscriptions: (Subscription | undefined)[];
  opening: Promise<void> | undefined;
  linger: Task | undefined;
}

type Subscription = () => Promise<void>;

export interface WakeUpsContext {
  readonly nodes: readonly RedisNode[];
  readonly size: number;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Unique to this manager: what its waiters are called by. */
  readonly base: string;
}

/**
 * Word from the nodes that somebody's turn has come: one channel for a manager (in a Cluster one
 * for each lock), one connection for each node, open only while somebody waits.
 */
export class WakeUps {
  readonly base: string;
  readonly #context: WakeUpsContext;
  readonly #channels = new Map<string, Channel>();
  readonly #waiters = new Map<string, (node: number) => void>();
  #count = 0;
  #closed = false;

  constructor(context: WakeUpsContext) {
    this.#context = context;
    this.base = context.base;
  }

  /** The number by which the nodes call a new waiter. */
  newNumber(): string {
    this.#count += 1;
    return this.#count.toString(36);
  }

  /** `told` hears which node has called `number`, until it is forgotten. */
  register(number: string, told: (node: number) => void): void {
    this.#waiters.set(number, told);
  }

  forget(number: string): void {
    this.#waiters.delete(number);
  }

  /**
   * Resolves when a quorum of nodes is listened to, or has failed, or did not answer in time:
   * waiting goes on without. Undefined where there is nothing to wait for.
   */
  use(names: readonly string[], timeoutMs: number): Promise<void> | undefined {
    const opening = names.flatMap((name) => this.#use(name) ?? []);
    return opening.length === 0 ? undefined : this.#atMost(timeoutMs, Promise.all(opening));
  }

  leave(names: readonly string[]): void {
    for (const name of names) {
      const channel = this.#channels.get(name);
      if (channel === undefined) continue;
      channel.users -= 1;
      if (channel.users > 0 || channel.linger !== undefined) continue;
      const dueMs = this.#context.clock.monotonicMs() + lingerMs;
      channel.linger = this.#context.scheduler.at(dueMs, false, () => this.#drop(channel));
    }
  }

  /** The connections themselves are closed by whoever closes the nodes. */
  close(): void {
    this.#closed = true;
    for (const { linger } of this.#channels.values()) {
      if (linger !== undefined) this.#context.scheduler.cancel(linger);
    }
    this.#channels.clear();
    this.#waiters.clear();
  }

  #use(name: string): Promise<void> | undefined {
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      const subscriptions = this.#context.nodes.map(() => undefined);
      channel = { name, users: 0, subscriptions, opening: undefined, linger: undefined };
      this.#channels.set(name, channel);
    }
    channel.users += 1;
    if (channel.linger !== undefined) this.#context.scheduler.cancel(channel.linger);
    channel.linger = undefined;
    return this.#opened(channel);
  }

  /** Also tries again what failed before: each new waiter is an occasion. */
  #opened(channel: Channel): Promise<void> | undefined {
    const missing = channel.subscriptions.flatMap((open, index) => (open ? [] : [index]));
    if (missing.length === 0) return undefined;
    channel.opening ??= this.#open(channel, missing).finally(() => {
      channel.opening = undefined;
    });
    const enough = this.#context.nodes.length - missing.length >= this.#context.size;
    return enough ? undefined : channel.opening;
  }

  async #open(channel: Channel, missing: readonly number[]): Promise<void> {
    const { nodes, size } = this.#context;
    let open = nodes.length - missing.length;
    let left = missing.length;
    await new Promise<void>((resolve) => {
      const subscribe = async (index: number): Promise<void> => {
        if (await this.#subscribe(channel, index)) open += 1;
        left -= 1;
        if (open >= size || left === 0) resolve();
      };
      for (const index of missing) void subscribe(index);
    });
  }

  async #subscribe(channel: Channel, index: number): Promise<boolean> {
    const connection = this.#context.nodes[index]?.connection;
    const subscribed = connection?.subscribe?.(channel.name, (number) => {
      this.#waiters.get(number)?.(index);
    });
    // A node that is away, or a user who may not: those who wait ask this node by turns.
    const end = await subscribed?.catch(() => undefined);
    if (end === undefined) return false;
    // Dropped, or opened a second time, while this was under way.
    if (this.#channels.get(channel.name) !== channel || channel.subscriptions[index]) {
      await end();
      return false;
    }
    channel.subscriptions[index] = end;
    return true;
  }

  #drop(channel: Channel): void {
    this.#channels.delete(channel.name);
    // A connection that is broken has nothing left to end.
    for (const end of channel.subscriptions) end?.().catch(() => undefined);
  }

  #atMost(timeoutMs: number, opened: Promise<unknown>): Promise<void> {
    const { clock, scheduler } = this.#context;
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = scheduler.at(clock.monotonicMs() + timeoutMs, true, resolve);
      void opened.then(() => {
        scheduler.cancel(timer);
        resolve();
      });
    });
  }
}
