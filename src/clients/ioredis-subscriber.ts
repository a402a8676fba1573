import type { Subscriber, SubscriberEvents } from "./subscriptions.ts";

/**
 * Client that can create another client with the same options, as ioredis and iovalkey clients can.
 */
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

/**
 * Time for the server to close its side of the connection. After that time the socket is destroyed.
 */
const disconnectTimeoutMs = 100;

/**
 * Opens a connection that is used once and never reconnects. After a reconnect the library would
 * re-subscribe without a handler for a rejection, and the rejection would end the user's process.
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
  // The client also emits "error" for replies that the library does not expect, for example when a
  // channel of a Cluster moves to another server.
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
