import type { Subscriber, SubscriberEvents } from "./subscriptions.ts";

/** Client that can create another client with the same options, as node-redis clients can. */
export interface NodeRedisDuplicator {
  /** Missing on a Sentinel client, which connects to its nodes by itself. */
  readonly options?: { readonly socket?: object | undefined } | undefined;
  duplicate(overrides: object): NodeRedisSubscriber;
}

interface NodeRedisSubscriber {
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: (cause?: unknown) => void): unknown;
  subscribe(channel: string, listener: PubSubListener): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  sSubscribe(channel: string, listener: PubSubListener): Promise<unknown>;
  sUnsubscribe(channel: string): Promise<unknown>;
}

type PubSubListener = (message: string, channel: string) => void;

/**
 * Opens a connection that is used once and never reconnects. A Sentinel client always reconnects,
 * so it is closed at its first error.
 */
export function openNodeRedisSubscriber(
  client: NodeRedisDuplicator,
  kind: "shared" | "sharded",
  { deliver, lost }: SubscriberEvents,
): Subscriber {
  const socket = client.options?.socket;
  const subscriber = client.duplicate({
    commandOptions: {},
    ...(client.options === undefined ? {} : { socket: { ...socket, reconnectStrategy: false } }),
  });
  const closing = new Closing(subscriber);
  subscriber.on("error", lost);
  const ended = (): void => lost(new Error("the connection of the subscriber ended"));
  for (const event of ["end", "terminated"]) subscriber.on(event, ended);
  const moved = (): void => lost(new Error("the slot of a channel has moved"));
  subscriber.on("sharded-channel-moved", moved);
  const listener: PubSubListener = (message, channel) => deliver(channel, message);
  const isSharded = kind === "sharded";
  return {
    connected: subscriber.connect(),
    subscribe: (channel) =>
      isSharded
        ? subscriber.sSubscribe(channel, listener)
        : subscriber.subscribe(channel, listener),
    unsubscribe: (channel) =>
      isSharded ? subscriber.sUnsubscribe(channel) : subscriber.unsubscribe(channel),
    close: () => closing.begin(),
  };
}

/**
 * Closes a subscriber safely. In some versions a client that is destroyed while it connects leaks
 * its socket. So the close waits for the "connect" event. A failed connect leaves no socket.
 */
class Closing {
  readonly #subscriber: NodeRedisSubscriber;
  #hasSocket = false;
  #isWanted = false;

  constructor(subscriber: NodeRedisSubscriber) {
    this.#subscriber = subscriber;
    subscriber.on("connect", () => {
      this.#hasSocket = true;
      // Destroys the client after the library has sent its first commands. The library can then
      // reject these commands.
      if (this.#isWanted) setImmediate(() => void this.#destroy());
    });
  }

  begin(): Promise<void> {
    this.#isWanted = true;
    return this.#hasSocket ? this.#destroy() : Promise.resolve();
  }

  /**
   * Destroys the client. Ignores errors, because some versions throw if nothing is left to close.
   */
  async #destroy(): Promise<void> {
    try {
      await this.#subscriber.destroy();
    } catch {}
  }
}
