import type { SubscriptionListener } from "./contract.ts";

/**
 * Connection that is used only for subscriptions. An adapter opens it in addition to the user's
 * client and uses it once: the library must neither reconnect nor re-subscribe.
 */
export interface Subscriber {
  /** Promise that settles when the connection is ready or has failed. */
  readonly connected: Promise<unknown>;
  /** Resolves when the server has confirmed the subscription. */
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Closes the connection. Never rejects. Pending calls on the connection then reject. */
  close(): Promise<void> | void;
}

export interface SubscriberEvents {
  readonly deliver: (channel: string, message: string) => void;
  /** Called when the connection failed or ended; possibly more than once and after `close()`. */
  readonly lost: (cause: unknown) => void;
}

/** Starts to open a subscriber and returns at once. */
export type OpenSubscriber = (events: SubscriberEvents) => Subscriber;

/**
 * A subscriber, and a promise that resolves when it is closed. Waits end with that promise, too,
 * because some libraries never settle the commands that are pending at the close.
 */
interface Line {
  readonly subscriber: Subscriber;
  readonly closed: Promise<void>;
  readonly close: () => Promise<void>;
}

interface Channel {
  /** One object per subscription, so the same listener can subscribe twice. */
  readonly entries: Set<{ readonly listener: SubscriptionListener }>;
  isReady: boolean;
  /** Settles when the server has confirmed or refused the subscription. Never rejects. */
  begun: Promise<void> | undefined;
}

/**
 * Channels of one adapter on one shared subscriber connection. The connection opens for the first
 * channel and closes after the last. If the connection ends, all subscriptions are lost.
 */
export class Subscriptions {
  readonly #open: OpenSubscriber;
  readonly #channels = new Map<string, Channel>();
  /**
   * Unsubscribe requests in flight, by channel. A new subscription to the channel waits for the end
   * of its request.
   */
  readonly #leaving = new Map<string, Promise<unknown>>();
  #line: Line | undefined;

  constructor(open: OpenSubscriber) {
    this.#open = open;
  }

  get isEmpty(): boolean {
    return this.#channels.size === 0;
  }

  subscribe(name: string, listener: SubscriptionListener): () => Promise<void> {
    const entry = { listener };
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      channel = { entries: new Set(), isReady: false, begun: undefined };
      this.#channels.set(name, channel);
      channel.begun = this.#begin(name, channel);
    } else if (channel.isReady) {
      const { entries } = channel;
      void Promise.resolve().then(() => {
        if (entries.has(entry)) listener.onReady();
      });
    }
    const joined = channel;
    joined.entries.add(entry);
    return async () => {
      if (!joined.entries.delete(entry) || joined.entries.size > 0) return;
      if (this.#channels.get(name) === joined) await this.#leave(name, joined);
    };
  }

  async #begin(name: string, channel: Channel): Promise<void> {
    // This await also lets `subscribe` return before any listener is called.
    await this.#leaving.get(name);
    if (this.#channels.get(name) !== channel) return;
    let line = this.#line;
    try {
      line = this.#line ??= this.#connect();
      await line.subscriber.connected;
    } catch (error) {
      if (this.#channels.get(name) === channel) this.#lose(line, error);
      return;
    }
    if (this.#channels.get(name) !== channel) return;
    try {
      await line.subscriber.subscribe(name);
    } catch (error) {
      if (this.#channels.get(name) === channel) this.#refuse(name, channel, error);
      return;
    }
    channel.isReady = true;
    if (this.#channels.get(name) !== channel) return;
    for (const { listener } of channel.entries) listener.onReady();
  }

  #connect(): Line {
    const subscriber = this.#open({
      deliver: (name, message) => {
        const channel = this.#channels.get(name);
        if (channel === undefined || this.#line !== line) return;
        for (const { listener } of channel.entries) listener.onMessage(message);
      },
      lost: (cause) => {
        if (this.#line === line) this.#lose(line, cause);
      },
    });
    let onClosed: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => {
      onClosed = resolve;
    });
    const close = async (): Promise<void> => {
      onClosed();
      await subscriber.close();
    };
    const line: Line = { subscriber, closed, close };
    return line;
  }

  /** Called when the connection is lost: reports the loss to all subscriptions. */
  #lose(line: Line | undefined, cause: unknown): void {
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    this.#leaving.clear();
    this.#line = undefined;
    void line?.close();
    for (const channel of channels) reportLost(channel, cause);
  }

  /** Called when the server refused this channel. The other channels stay. */
  #refuse(name: string, channel: Channel, cause: unknown): void {
    this.#channels.delete(name);
    if (this.isEmpty) void this.#close();
    reportLost(channel, cause);
  }

  async #leave(name: string, channel: Channel): Promise<void> {
    this.#channels.delete(name);
    // Closing the connection ends the last channel without an unsubscribe request.
    if (this.isEmpty) return await this.#close();
    const left = unsubscribed(name, channel, this.#line);
    this.#leaving.set(name, left);
    await left;
    if (this.#leaving.get(name) === left) this.#leaving.delete(name);
  }

  async #close(): Promise<void> {
    const line = this.#line;
    this.#line = undefined;
    this.#leaving.clear();
    await line?.close();
  }
}

function reportLost({ entries }: Channel, cause: unknown): void {
  const listeners = [...entries];
  entries.clear();
  for (const { listener } of listeners) listener.onLost(cause);
}

/**
 * Resolves when the server has confirmed the unsubscribe or the connection closed. Never rejects.
 */
async function unsubscribed(name: string, channel: Channel, line: Line | undefined): Promise<void> {
  if (line === undefined) return;
  const { subscriber, closed } = line;
  const unsubscribe = async (): Promise<void> => {
    await channel.begun;
    if (!channel.isReady) return;
    try {
      await subscriber.unsubscribe(name);
    } catch {
      // The connection has ended, which also ended the subscription.
    }
  };
  await Promise.race([unsubscribe(), closed]);
}

/** Channels of a Cluster adapter: one subscriber connection per node that has channels. */
export class NodeSubscriptions<Node> {
  readonly #open: (node: Node, events: SubscriberEvents) => Subscriber;
  readonly #nodes = new Map<string, Subscriptions>();

  constructor(open: (node: Node, events: SubscriberEvents) => Subscriber) {
    this.#open = open;
  }

  /** Subscribes on the node called `key`. Opens a connection to `node` if there is none yet. */
  subscribe(
    key: string,
    node: Node,
    channel: string,
    listener: SubscriptionListener,
  ): () => Promise<void> {
    let subscriptions = this.#nodes.get(key);
    if (subscriptions === undefined || subscriptions.isEmpty) {
      // Drops entries of nodes without channels, because nodes of a Cluster come and go.
      for (const [known, { isEmpty }] of this.#nodes) if (isEmpty) this.#nodes.delete(known);
      subscriptions = new Subscriptions((events) => this.#open(node, events));
      this.#nodes.set(key, subscriptions);
    }
    return subscriptions.subscribe(channel, listener);
  }
}

/**
 * Returns the subscription of a client that is not connected: calls `onLost` in a later microtask.
 */
export function neverSubscribed(listener: SubscriptionListener, cause: Error): () => Promise<void> {
  let isWanted = true;
  void Promise.resolve().then(() => {
    if (isWanted) listener.onLost(cause);
  });
  return () => {
    isWanted = false;
    return Promise.resolve();
  };
}
