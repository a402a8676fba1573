import { addressOf } from "./address.ts";
import type { RedisConnection } from "./contract.ts";
import { type ConnectWatch, firstConnectOf } from "./first-connect.ts";
import { lastErrorOf, notConnectedTo } from "./last-error.ts";
import { lowered, sharedCommands } from "./ioredis-command.ts";
import { openIoredisSubscriber, type IoredisDuplicator } from "./ioredis-subscriber.ts";
import { neverSubscribed, Subscriptions } from "./subscriptions.ts";

/**
 * The part of a client of ioredis 5 or 6, or of iovalkey, that is used here (also with Sentinel).
 */
export interface IoredisClient extends IoredisDuplicator {
  readonly status: string;
  readonly options?: object;
  readonly stream?: { readonly writable?: boolean } | null;
  call(name: string, args: string[]): Promise<unknown>;
  connect(): Promise<unknown>;
}

export const library = "ioredis";

/**
 * Returns the connection for one server, or for the master that Sentinel names.
 *
 * Limits that an adapter cannot change: with `autoResendUnfulfilledCommands` (ioredis default) the
 * library sends a command in flight on a broken connection again after the reconnect. So the
 * command may run twice and late. The same happens with `enableAutoPipelining` to a command that
 * waits for an earlier pipeline. Every command of Holdfast is therefore idempotent for its owner.
 */
export function ioredisConnection(client: IoredisClient): RedisConnection {
  const subscriptions = new Subscriptions((events) =>
    openIoredisSubscriber(client, "shared", events),
  );
  const sendShared = sharedCommands(client);
  lastErrorOf(client);
  return {
    library,
    topology: "standalone",
    address: addressOf(client.options),
    send(_key, command) {
      if (!isConnected(client)) return refuse(client);
      if (sendShared !== undefined) return sendShared(command);
      return client.call(lowered(command[0]), command.slice(1));
    },
    firstConnect: firstConnectOf(client, connectWatch(client)),
    // The socket stands for the connection: after a reconnect it is another object. The library
    // writes commands in call order (with `enableAutoPipelining` slightly later), as `line`
    // promises.
    line: () => client.stream ?? undefined,
    subscribe(channel, listener) {
      if (isConnected(client)) return subscriptions.subscribe(channel, listener);
      return neverSubscribed(listener, notConnectedTo(client, library, client.status));
    },
  };
}

/**
 * True if a command can be sent now. `status` stays "ready" for a moment after the socket closed,
 * and a command sent then would join the offline queue. So this also checks the socket.
 */
function isConnected(client: IoredisClient): boolean {
  return client.status === "ready" && client.stream?.writable !== false;
}

/**
 * Returns the events and the state that show the first connect. Reading `state` starts a client
 * with `lazyConnect`.
 */
export function connectWatch(client: Pick<IoredisClient, "status" | "connect">): ConnectWatch {
  return {
    library,
    readyEvent: "ready",
    failedEvents: ["close", "end"],
    state() {
      if (client.status === "wait") client.connect().catch(() => undefined);
      return client.status === "connecting" || client.status === "connect" ? "connecting" : "over";
    },
  };
}

/**
 * Returns a rejected promise. Also starts a client that waits for its first command because of
 * `lazyConnect`.
 */
export function refuse(client: Pick<IoredisClient, "status" | "connect">): Promise<never> {
  // The status is "ready" for a moment after the socket closed.
  const status = client.status === "ready" ? "closed" : client.status;
  const error = notConnectedTo(client, library, status);
  // Ignores the rejection, because the client also reports the cause by its "error" event.
  if (client.status === "wait") client.connect().catch(() => undefined);
  return Promise.reject(error);
}
