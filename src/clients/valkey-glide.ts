import { addressOf } from "./address.ts";
import { NotConnectedError, type RedisConnection } from "./contract.ts";
import { neverSubscribed, Subscriptions } from "./subscriptions.ts";
import { serverError } from "./valkey-glide-errors.ts";
import { type GlideClass, openGlideSubscriber } from "./valkey-glide-subscriber.ts";

/** The part of GlideClient or GlideClusterClient of @valkey/valkey-glide 2 that is used here. */
export interface GlideClient {
  readonly isClosed?: boolean;
  /** Options with which the client was created. The library has no `duplicate`. */
  readonly config?: object;
  customCommand(args: readonly string[], options: object): Promise<unknown>;
  close(): void;
}

const library = "valkey-glide";
/** `Decoder.String`; the number is part of the library's API. */
const decodeStrings = 1;
const asStrings = Object.freeze({ decoder: decodeStrings });

/**
 * Returns the connection for a GLIDE client. GLIDE shows no connection state except "closed". Its
 * core connects by itself, and rejects a command with a timeout if it did not send the command
 * within the client's `requestTimeout` (250 ms). So a server that is down looks like a slow server:
 * its vote is unknown, never failed.
 */
export function glideConnection(
  client: GlideClient,
  topology: RedisConnection["topology"],
): RedisConnection {
  const send: RedisConnection["send"] = (key, command) => {
    if (client.isClosed === true) return refuse();
    const options =
      topology === "standalone"
        ? asStrings
        : { decoder: decodeStrings, route: { type: "primarySlotKey", key } };
    return client.customCommand(command, options).catch(rethrow);
  };
  const address = topology === "standalone" ? addressOf(client.config) : undefined;
  const connection: RedisConnection = { library, topology, address, send };
  if (!canSubscribe(client, topology)) return connection;
  const subscriptions = new Subscriptions((events) =>
    openGlideSubscriber({ client, topology, send }, events),
  );
  return {
    ...connection,
    subscribe: (channel, listener) =>
      client.isClosed === true
        ? neverSubscribed(listener, new NotConnectedError(library, "closed"))
        : subscriptions.subscribe(channel, listener),
  };
}

function rethrow(error: unknown): never {
  throw serverError(error);
}

function refuse(): Promise<never> {
  return Promise.reject(new NotConnectedError(library, "closed"));
}

function canSubscribe(client: GlideClient, topology: RedisConnection["topology"]): boolean {
  const { createClient } = client.constructor as Partial<GlideClass>;
  const method = topology === "standalone" ? "subscribe" : "ssubscribe";
  return typeof createClient === "function" && client.config !== undefined && method in client;
}
