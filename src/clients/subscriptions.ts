import type { SubscriptionListener } from "./contract.ts";

/**
 * One connection that only subscribes, opened by an adapter beside the user's client and used
 * once: the library must neither connect nor subscribe again by itself.
 */
export interface Subscriber {
  /** Settles when the connection stands, or could not be made. */
  readonly connected: Promise<unknown>;
  /** Resolves when the server has confirmed. */
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Never rejects. What is under way on the connection rejects then. */
  close(): Promise<void> | void;
}

export interface SubscriberEvents {
  readonly deliver: (channel: string, message: string) => void;
  /** The connection failed or ended. May be called more than once, and after `close()`. */
  readonly lost: (cause: unknown) => void;
}

/** Starts to open a subscriber and returns at once. */
export type OpenSubscriber = (events: SubscriberEvents) => Subscriber;

/** A subscriber, and what is settled when it is closed: some libraries leave commands open then. */
interface Line {
  readonly subscriber: Subscriber;
  readonly closed: Promise<void>;
  readonly close: () => Promise<void>;
}

interface Channel {
  /** Each subscription has an object of its own, so one listener may be given twice. */
  readonly entries: Set<{ readonly listener: SubscriptionListener }>;
  isReady: boolean;
  /** Settles when the server has confirmed or refused; never rejects. */
  begun: Promise<void> | undefined;
}

/**
 * The channels of one adapter over one subscriber connection: opened for the first channel, shared
 * by all, closed after the last. A connection that ends takes all its subscriptions with it.
 */
export class Subscriptions {
  readonly #open: OpenSubscriber;
  readonly #channels = new Map<string, Channel>();
  /** Unsubscribes under way: a new subscription to the same channel waits for them. */
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
    // Also lets `subscribe` return before anything is called back.
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

  /** The connection is gone, and all subscriptions with it. */
  #lose(line: Line | undefined, cause: unknown): void {
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    this.#leaving.clear();
    this.#line = undefined;
    void line?.close();
    for (const channel of channels) reportLost(channel, cause);
  }

  /** The server refused this channel; the others stay. */
  #refuse(name: string, channel: Channel, cause: unknown): void {
    this.#channels.delete(name);
    if (this.isEmpty) void this.#close();
    reportLost(channel, cause);
  }

  async #leave(name: string, channel: Channel): Promise<void> {
    this.#channels.delete(name);
    // The connection closes with its last channel: no need to unsubscribe first.
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

/** Settles when the server has confirmed that, or the connection is closed; never rejects. */
async function unsubscribed(name: string, channel: Channel, line: Line | undefined): Promise<void> {
  if (line === undefined) return;
  const { subscriber, closed } = line;
  const unsubscribe = async (): Promise<void> => {
    await channel.begun;
    if (!channel.isReady) return;
    try {
      await subscriber.unsubscribe(name);
    } catch {
      // The connection ended, and the subscription with it.
    }
  };
  await Promise.race([unsubscribe(), closed]);
}

/** The channels of a Cluster's adapter: one subscriber connection for each node that has some. */
export class NodeSubscriptions<Node> {
  readonly #open: (node: Node, events: SubscriberEvents) => Subscriber;
  readonly #nodes = new Map<string, Subscriptions>();

  constructor(open: (node: Node, events: SubscriberEvents) => Subscriber) {
    this.#open = open;
  }

  /** `key` names the node, which is asked for a connection if there is none. */
  subscribe(
    key: string,
    node: Node,
    channel: string,
    listener: SubscriptionListener,
  ): () => Promise<void> {
    let subscriptions = this.#nodes.get(key);
    if (subscriptions === undefined || subscriptions.isEmpty) {
      // Nodes come and go: those without a channel are forgotten.
      for (const [known, { isEmpty }] of this.#nodes) if (isEmpty) this.#nodes.delete(known);
      subscriptions = new Subscriptions((events) => this.#open(node, events));
      this.#nodes.set(key, subscriptions);
    }
    return subscriptions.subscribe(channel, listener);
  }
}

/** Stands for a subscription that cannot even be tried. */
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
