import type { Subscriber, SubscriberEvents } from "./subscriptions.ts";

/** What can make another client with the same options: a client of ioredis or iovalkey. */
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

/** Time that a server has to close its side; then the socket is destroyed. */
const disconnectTimeoutMs = 100;

/**
 * Opens a connection that is used once. After a reconnect the library would subscribe again
 * without a handler for the rejection, which ends the user's process: so it does not reconnect.
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
  // Also what the library cannot make sense of, such as the end of a channel whose slot moved.
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
