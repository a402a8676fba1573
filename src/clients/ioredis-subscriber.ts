import type { Subscriber, SubscriberEvents } from "./subscriptions.ts";

/** Creates another client with the same options; ioredis and iovalkey clients can. */
export interface IoredisDuplicator {
  duplicate(override: object): IoredisSubscriber;
}

interface IoredisSubscriber {
  connect(): Promise<unknown>;
  disconnect(): void;
  on(event: string, listener: (first: unknown, message: string) => void): unknown;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  ssubscribe(channel: string): Promise<unknown>;
  sunsubscribe(channel: string): Promise<unknown>;
}

/** Time for the server to close its side; after that the socket is destroyed. */
const disconnectTimeoutMs = 100;

/**
 * Opens a connection that is used once and never reconnects. On a reconnect the library would
 * re-subscribe without a handler for a rejection, which would end the user's process.
 */
export function openIoredisSubscriber(
  client: IoredisDuplicator,
  kind: "shared" | "sharded",
  { deliver, lost }: SubscriberEvents,
): Subscriber {
  const subscriber = client.duplicate({
    lazyConnect: true,
    retryStrategy: null,
    reconnectOnError: null,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    failoverDetector: false,
    keyPrefix: "",
    disconnectTimeout: disconnectTimeoutMs,
  });
  // Also emitted for replies the library does not expect, such as the end of a moved channel.
  subscriber.on("error", lost);
  subscriber.on("end", () => lost(new Error("the connection of the subscriber ended")));
  const isSharded = kind === "sharded";
  subscriber.on(isSharded ? "smessage" : "message", (channel, message) =>
    deliver(String(channel), message),
  );
  return {
    connected: subscriber.connect(),
    subscribe: (channel) =>
      isSharded ? subscriber.ssubscribe(channel) : subscriber.subscribe(channel),
    unsubscribe: (channel) =>
      isSharded ? subscriber.sunsubscribe(channel) : subscriber.unsubscribe(channel),
    close: () => subscriber.disconnect(),
  };
}
