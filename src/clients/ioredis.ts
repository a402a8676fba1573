import { NotConnectedError, type RedisConnection } from "./contract.ts";
import { type ConnectWatch, firstConnectOf } from "./first-connect.ts";
import { lowered, sharedCommands } from "./ioredis-command.ts";
import { openIoredisSubscriber, type IoredisDuplicator } from "./ioredis-subscriber.ts";
import { neverSubscribed, Subscriptions } from "./subscriptions.ts";

/** What is used of a client of ioredis 5 or 6 or of iovalkey, alone or managed by Sentinel. */
export interface IoredisClient extends IoredisDuplicator {
  readonly status: string;
  readonly stream?: { readonly writable?: boolean } | null;
  call(name: string, args: string[]): Promise<unknown>;
  connect(): Promise<unknown>;
}

export const library = "ioredis";

/**
 * Serves one server, or the master that Sentinel names.
 *
 * What cannot be switched off from here: with `autoResendUnfulfilledCommands` (ioredis's default)
 * a command in flight when the connection broke is sent again after the reconnect, so it may run
 * twice and late; with `enableAutoPipelining` the same holds for a command that waits for the
 * pipeline before it. Every command Holdfast sends is therefore idempotent for its owner.
 */
export function ioredisConnection(client: IoredisClient): RedisConnection {
  const subscriptions = new Subscriptions((events) =>
    openIoredisSubscriber(client, "shared", events),
  );
  const sendShared = sharedCommands(client);
  return {
    library,
    topology: "standalone",
    send(_key, command) {
      if (!isConnected(client)) return refuse(client);
      if (sendShared !== undefined) return sendShared(command);
      return client.call(lowered(command[0]), command.slice(1));
    },
    firstConnect: firstConnectOf(client, connectWatch(client)),
    // Written at once, or with `enableAutoPipelining` a moment later, in the order of the calls.
    line: () => client.stream ?? undefined,
    subscribe(channel, listener) {
      if (isConnected(client)) return subscriptions.subscribe(channel, listener);
      return neverSubscribed(listener, new NotConnectedError(library, client.status));
    },
  };
}

/** `ready` outlives the socket by a moment, in which a command would join the offline queue. */
function isConnected(client: IoredisClient): boolean {
  return client.status === "ready" && client.stream?.writable !== false;
}

/** With `lazyConnect` it begins now. */
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

/** Rejects, and wakes a client that its `lazyConnect` keeps waiting for a first command. */
export function refuse(client: Pick<IoredisClient, "status" | "connect">): Promise<never> {
  const error = new NotConnectedError(library, client.status);
  // The client's own "error" event tells its owner why; this attempt is only a nudge.
  if (client.status === "wait") client.connect().catch(() => undefined);
  return Promise.reject(error);
}
