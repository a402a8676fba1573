import { NotConnectedError } from "../../../clients/contract.ts";
import type { Emitter } from "../../../core/events.ts";
import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import { noWakeUps } from "../node/fault-findings.ts";
import type { RedisNode } from "../node/node.ts";

/** Limit for the confirmation of a subscription. */
const openMsMax = 5_000;

/** Pauses before the first and the second retry. After that they double. */
const firstPauseMs = 100;
const secondPauseMs = 1_000;
const pauseMsMax = 30_000;

/** Pause while the client itself is not connected: a retry costs nothing then. */
const disconnectedPauseMs = 1_000;

/** A subscription that was open for this long resets the pauses and the warning. */
const wellMs = 10_000;

export interface NodeListeningHost {
  readonly node: RedisNode;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  /** Called when the node notifies the waiter with this number. */
  readonly onCall: (number: string) => void;
  /** Called when the subscription to this channel was opened or lost. */
  readonly onChange: (channel: string) => void;
}

interface Subscription {
  /** Ends the subscription. Undefined unless the subscription is open or being opened. */
  end: (() => Promise<void>) | undefined;
  /** Monotonic time since which the subscription is open; undefined if it is not open. */
  openSinceMs: number | undefined;
  /** Timer that ends the current try. */
  limit: Task | undefined;
}

/**
 * Subscriptions of one manager at one node. Failed subscriptions are retried together at growing
 * pauses, with any number of waiters. Never keeps the process running.
 */
export class NodeListening {
  readonly #host: NodeListeningHost;
  readonly #subscriptions = new Map<string, Subscription>();
  #failures = 0;
  #isBad = false;
  #hasWarned = false;
  #nextMs = -Infinity;
  #retry: Task | undefined;

  constructor(host: NodeListeningHost) {
    this.#host = host;
  }

  /** Keeps `name` subscribed until `close`. Tries at once unless a try failed a moment ago. */
  open(name: string): void {
    if (this.#subscriptions.has(name)) return;
    const subscription = { end: undefined, openSinceMs: undefined, limit: undefined };
    this.#subscriptions.set(name, subscription);
    // In a Cluster the channels fail separately: one failed channel does not delay another.
    if (this.#nowMs >= this.#nextMs || this.#hasOpen) this.#try(name, subscription);
    else this.#tryLater();
  }

  /** Resolves when the subscription is closed. */
  async close(name: string): Promise<void> {
    const subscription = this.#subscriptions.get(name);
    if (subscription === undefined) return;
    this.#subscriptions.delete(name);
    if (this.#subscriptions.size === 0) this.#cancelRetry();
    this.#noteEnd(subscription);
    const { end } = subscription;
    subscription.end = undefined;
    await end?.();
  }

  isOpen(name: string): boolean {
    return this.#subscriptions.get(name)?.openSinceMs !== undefined;
  }

  /** True if channel `name` is being opened, and the node's last subscription did not fail. */
  isPromising(name: string): boolean {
    return !this.#isBad && this.#subscriptions.get(name)?.end !== undefined && !this.isOpen(name);
  }

  /**
   * Called when waiters have waited long enough for channel `name` to open. Later waiters do not
   * wait for the channels of this node.
   */
  giveUp(name: string): void {
    if (this.isPromising(name)) this.#isBad = true;
  }

  get #nowMs(): number {
    return this.#host.scheduler.clock.monotonicMs();
  }

  get #hasOpen(): boolean {
    for (const { openSinceMs } of this.#subscriptions.values()) {
      if (openSinceMs !== undefined) return true;
    }
    return false;
  }

  #try(name: string, subscription: Subscription): void {
    const { node, scheduler, onCall, onChange } = this.#host;
    const { connection } = node;
    if (connection.subscribe === undefined) return;
    const isThis = (): boolean => this.#subscriptions.get(name) === subscription;
    const end = connection.subscribe(name, {
      onReady: () => {
        if (!isThis() || subscription.end !== end) return;
        if (subscription.limit !== undefined) scheduler.cancel(subscription.limit);
        subscription.openSinceMs = this.#nowMs;
        this.#isBad = false;
        onChange(name);
      },
      onMessage: onCall,
      onLost: (cause) => {
        if (isThis() && subscription.end === end) this.#onLost(name, subscription, cause);
      },
    });
    subscription.end = end;
    subscription.limit = scheduler.at(this.#nowMs + openMsMax, false, () => {
      void end().catch(() => undefined);
      this.#onLost(name, subscription, new Error(`no answer to SUBSCRIBE in ${openMsMax} ms`));
    });
  }

  #onLost(name: string, subscription: Subscription, cause: unknown): void {
    const wasOpen = subscription.openSinceMs !== undefined;
    this.#noteEnd(subscription);
    subscription.end = undefined;
    subscription.openSinceMs = undefined;
    this.#isBad = true;
    if (isNotConnected(cause)) {
      // No warning here: the missing connection is already reported as a fault of the node.
      this.#nextMs = this.#nowMs + disconnectedPauseMs;
    } else {
      this.#nextMs = this.#nowMs + this.#nextPauseMs();
      if (!wasOpen) this.#warn(cause);
    }
    this.#tryLater();
    this.#host.onChange(name);
  }

  #noteEnd({ openSinceMs, limit }: Subscription): void {
    if (limit !== undefined) this.#host.scheduler.cancel(limit);
    if (openSinceMs === undefined || this.#nowMs - openSinceMs < wellMs) return;
    this.#failures = 0;
    this.#hasWarned = false;
  }

  #nextPauseMs(): number {
    this.#failures += 1;
    if (this.#failures === 1) return firstPauseMs;
    return Math.min(pauseMsMax, secondPauseMs * 2 ** (this.#failures - 2));
  }

  #tryLater(): void {
    if (this.#host.node.connection.subscribe === undefined || this.#retry !== undefined) return;
    this.#retry = this.#host.scheduler.at(this.#nextMs, false, () => {
      this.#retry = undefined;
      for (const [name, subscription] of this.#subscriptions) {
        if (subscription.end === undefined) this.#try(name, subscription);
      }
    });
  }

  #cancelRetry(): void {
    if (this.#retry !== undefined) this.#host.scheduler.cancel(this.#retry);
    this.#retry = undefined;
  }

  #warn(cause: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { node, events } = this.#host;
    const command = node.connection.topology === "cluster" ? "SSUBSCRIBE" : "SUBSCRIBE";
    events.emit("warning", { ...noWakeUps([command], cause), node: node.name });
  }
}

/**
 * True if the error means that the client is not connected. Compares the name as well, because a
 * user's own connection may use another copy of the class.
 */
function isNotConnected(cause: unknown): boolean {
  return (
    cause instanceof NotConnectedError ||
    (cause instanceof Error && cause.name === "NotConnectedError")
  );
}
