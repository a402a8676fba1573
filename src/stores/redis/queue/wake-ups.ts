/**
 * Receives notifications of the nodes that a waiter is next.
 *
 * Problem: a waiter should make its attempt directly after a release, but a subscription per waiter
 * would cost each server a connection per call. Subscribing may fail, or hang.
 *
 * Idea: one channel per manager (in a Cluster one per lock) and one connection per node, open only
 * while there are waiters. A notification has the number of its waiter. If a channel cannot be
 * opened, the first waiters wait for it a limited time, and later ones not at all.
 *
 * Limits: notifications may be lost while a connection breaks. Waiters then make attempts at
 * intervals, and each is woken when a quorum of nodes begins or ceases to be subscribed.
 */

import type { Clock } from "../../../core/ports.ts";
import type { Emitter } from "../../../core/events.ts";
import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import type { RedisNode } from "../node/node.ts";
import { NodeListening } from "./node-listening.ts";

/** Time for which a subscription is kept after its last waiter: the next one often comes soon. */
const lingerMs = 5_000;

interface Channel {
  readonly name: string;
  users: number;
  /** True if a quorum of nodes can notify the waiters on this channel. */
  isListening: boolean;
  /** Ends the wait for the channel to open; undefined if nothing waits. */
  opened: (() => void) | undefined;
  opening: Promise<void> | undefined;
  linger: Task | undefined;
}

interface Waiter {
  readonly channels: readonly string[];
  readonly called: (node: number) => void;
}

export interface WakeUpsContext {
  readonly nodes: readonly RedisNode[];
  readonly size: number;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  /** Unique to this manager: part of its channel names and of its waiters' ids. */
  readonly base: string;
}

/** Subscriptions of one manager, and the waiters that they notify. */
export class WakeUps {
  readonly base: string;
  readonly #context: WakeUpsContext;
  readonly #nodes: readonly NodeListening[];
  readonly #channels = new Map<string, Channel>();
  readonly #waiters = new Map<string, Waiter>();
  #count = 0;
  #closed = false;

  constructor(context: WakeUpsContext) {
    this.#context = context;
    this.base = context.base;
    const { scheduler, events } = context;
    this.#nodes = context.nodes.map((node, index) => {
      const onCall = (number: string): void => this.#waiters.get(number)?.called(index);
      const onChange = (channel: string): void => this.#onChange(channel, index);
      return new NodeListening({ node, scheduler, events, onCall, onChange });
    });
  }

  /** Returns the number of a new waiter. The nodes send it in their notifications. */
  newNumber(): string {
    this.#count += 1;
    return this.#count.toString(36);
  }

  /**
   * Calls `called` with the index of each node that notifies `number`, until `forget`. Also called
   * when a quorum of nodes begins or ceases to listen, because notifications may have been lost.
   */
  register(number: string, channels: readonly string[], called: (node: number) => void): void {
    this.#waiters.set(number, { channels, called });
  }

  forget(number: string): void {
    this.#waiters.delete(number);
  }

  /**
   * Resolves when the channels are open on a quorum of nodes, when that is not possible now, or
   * when the time is up. In the last two cases the call waits for its lock without notifications.
   * Returns undefined if the channels are open already, or if earlier waiters have waited for them
   * in vain.
   */
  use(names: readonly string[], timeoutMs: number): Promise<void> | undefined {
    const opening = names.flatMap((name) => this.#use(name, timeoutMs) ?? []);
    return opening.length === 0 ? undefined : Promise.all(opening).then(() => undefined);
  }

  /**
   * True if a quorum of nodes can notify this manager on each of these channels now. If not, only
   * another attempt can show a waiter that the lock is free.
   */
  isListening(names: readonly string[]): boolean {
    return names.every((name) => this.#channels.get(name)?.isListening === true);
  }

  leave(names: readonly string[]): void {
    for (const name of names) {
      const channel = this.#channels.get(name);
      if (channel === undefined) continue;
      channel.users -= 1;
      if (channel.users > 0 || channel.linger !== undefined) continue;
      const dueMs = this.#context.clock.monotonicMs() + lingerMs;
      channel.linger = this.#context.scheduler.at(dueMs, false, () => void this.#drop(channel));
    }
  }

  /** Ends the subscriptions of this manager, within `timeoutMs`. Other managers keep theirs. */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true;
    this.#waiters.clear();
    const { clock, scheduler } = this.#context;
    const dropped = Promise.all([...this.#channels.values()].map((channel) => this.#drop(channel)));
    await new Promise<void>((resolve) => {
      const timer = scheduler.at(clock.monotonicMs() + timeoutMs, true, resolve);
      void dropped.then(() => {
        scheduler.cancel(timer);
        resolve();
      });
    });
  }

  #use(name: string, timeoutMs: number): Promise<void> | undefined {
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      if (this.#closed) return undefined;
      channel = {
        name,
        users: 0,
        isListening: false,
        opened: undefined,
        opening: undefined,
        linger: undefined,
      };
      this.#channels.set(name, channel);
      for (const node of this.#nodes) node.open(name);
    }
    channel.users += 1;
    if (channel.linger !== undefined) this.#context.scheduler.cancel(channel.linger);
    channel.linger = undefined;
    if (!this.#isWorthWaiting(channel)) return undefined;
    channel.opening ??= this.#opening(channel, timeoutMs);
    return channel.opening;
  }

  /** Waits until the channel is open or the time is up. Calls made during this wait share it. */
  async #opening(channel: Channel, timeoutMs: number): Promise<void> {
    const { clock, scheduler } = this.#context;
    await new Promise<void>((resolve) => {
      const timer = scheduler.at(clock.monotonicMs() + timeoutMs, true, () => {
        for (const node of this.#nodes) node.giveUp(channel.name);
        resolve();
      });
      channel.opened = () => {
        scheduler.cancel(timer);
        resolve();
      };
    });
    channel.opened = undefined;
    channel.opening = undefined;
  }

  /**
   * True if the channel is not open, but the nodes that are open or opening could make a quorum.
   */
  #isWorthWaiting({ name, isListening }: Channel): boolean {
    if (isListening) return false;
    const hopeful = this.#nodes.filter((node) => node.isOpen(name) || node.isPromising(name));
    return hopeful.length >= this.#context.size;
  }

  #onChange(name: string, node: number): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    const count = this.#nodes.filter((each) => each.isOpen(name)).length;
    const isListening = count >= this.#context.size;
    const hasChanged = isListening !== channel.isListening;
    channel.isListening = isListening;
    if (!this.#isWorthWaiting(channel)) channel.opened?.();
    if (!hasChanged) return;
    for (const waiter of this.#waiters.values()) {
      if (waiter.channels.includes(name)) waiter.called(node);
    }
  }

  async #drop(channel: Channel): Promise<void> {
    this.#channels.delete(channel.name);
    if (channel.linger !== undefined) this.#context.scheduler.cancel(channel.linger);
    channel.opened?.();
    // Errors are ignored: a broken connection has no subscription to end.
    await Promise.allSettled(this.#nodes.map((node) => node.close(channel.name)));
  }
}
