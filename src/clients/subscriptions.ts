type Listener = (message: string) => void;

/** One connection that does nothing but listen, opened by an adapter beside the user's client. */
export interface Subscriber {
  /** Settles when the first connection stands, or could not be made. */
  readonly connected: Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Never rejects; whatever is under way on the connection then does. */
  close(): Promise<void> | void;
}

/** Starts to open a subscriber and returns at once. */
export type OpenSubscriber = (deliver: (channel: string, message: string) => void) => Subscriber;

interface Channel {
  /** Each subscription has an object of its own, so one listener may be given twice. */
  readonly listeners: Set<{ readonly listener: Listener }>;
  readonly ready: Promise<void>;
}

/**
 * The channels of one adapter over one subscriber connection: opened for the first channel, shared
 * by all, closed after the last.
 */
export class Subscriptions {
  readonly #open: OpenSubscriber;
  readonly #channels = new Map<string, Channel>();
  /** Unsubscribes under way: a new subscription to the same channel waits for them. */
  readonly #leaving = new Map<string, Promise<unknown>>();
  #subscriber: Subscriber | undefined;

  constructor(open: OpenSubscriber) {
    this.#open = open;
  }

  async subscribe(name: string, listener: Listener): Promise<() => Promise<void>> {
    const entry = { listener };
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      channel = { listeners: new Set(), ready: this.#begin(name) };
      this.#channels.set(name, channel);
    }
    channel.listeners.add(entry);
    try {
      await channel.ready;
    } catch (error) {
      // The channel is forgotten, so that the next attempt starts afresh.
      channel.listeners.delete(entry);
      if (this.#channels.get(name) === channel) this.#channels.delete(name);
      await this.#closeWhenIdle();
      throw error;
    }
    const { listeners } = channel;
    return async () => {
      if (!listeners.delete(entry) || listeners.size > 0) return;
      if (this.#channels.get(name)?.listeners === listeners) await this.#leave(name);
    };
  }

  async close(): Promise<void> {
    this.#channels.clear();
    await this.#closeWhenIdle();
  }

  async #begin(name: string): Promise<void> {
    await this.#leaving.get(name);
    this.#assertWanted(name);
    this.#subscriber ??= this.#open(this.#deliver);
    const subscriber = this.#subscriber;
    await subscriber.connected;
    this.#assertWanted(name);
    await subscriber.subscribe(name);
  }

  /** A `close()` in the meantime must not be followed by a connection that nobody closes. */
  #assertWanted(name: string): void {
    if (!this.#channels.has(name)) throw new Error("closed before the subscription began");
  }

  async #leave(name: string): Promise<void> {
    this.#channels.delete(name);
    // The connection goes with its last channel: no need to unsubscribe first.
    if (this.#channels.size === 0) return this.#closeWhenIdle();
    const left = this.#subscriber?.unsubscribe(name).catch(() => undefined);
    if (left === undefined) return;
    this.#leaving.set(name, left);
    await left;
    if (this.#leaving.get(name) === left) this.#leaving.delete(name);
  }

  async #closeWhenIdle(): Promise<void> {
    if (this.#channels.size > 0) return;
    const subscriber = this.#subscriber;
    this.#subscriber = undefined;
    this.#leaving.clear();
    await subscriber?.close();
  }

  readonly #deliver = (name: string, message: string): void => {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    for (const { listener } of channel.listeners) listener(message);
  };
}
