import { NotConnectedError, type RedisConnection } from "./contract.ts";
import { type OpenSubscriber, Subscriptions } from "./subscriptions.ts";
import { serverError } from "./valkey-glide-errors.ts";

/** What is used of a GlideClient or GlideClusterClient of @valkey/valkey-glide 2. */
export interface GlideClient {
  readonly isClosed?: boolean;
  /** What the client was created with; the library has no `duplicate`. */
  readonly config?: object;
  customCommand(args: readonly string[], options: object): Promise<unknown>;
  close(): void;
}

/** A client of a version (2.3 and later) that can subscribe after it was created. */
interface GlideSubscriber extends GlideClient {
  subscribe(channels: Set<string>, timeoutMs: number): Promise<unknown>;
  unsubscribeLazy(channels: Set<string> | null): Promise<unknown>;
  ssubscribe(channels: Set<string>, timeoutMs: number): Promise<unknown>;
  sunsubscribeLazy(channels: Set<string> | null): Promise<unknown>;
}

interface GlideClass {
  createClient(config: object): Promise<GlideSubscriber>;
}

const library = "valkey-glide";
/** `Decoder.String` and `ProtocolVersion.RESP3`: their values are part of the library's API. */
const decodeStrings = 1;
const resp3 = 0;
const subscribeTimeoutMs = 5000;
const asStrings = Object.freeze({ decoder: decodeStrings });

/**
 * Serves GLIDE. It shows no connection state except "closed": its core dials by itself, and what
 * it could not send within the client's `requestTimeout` (250 ms) rejects with a timeout. So here
 * a server that is down looks like one that is slow, and a vote is unknown, never failed.
 */
export function glideConnection(
  client: GlideClient,
  topology: RedisConnection["topology"],
): RedisConnection {
  const subscriptions = new Subscriptions(subscriberOf(client, topology));
  const connection: RedisConnection = {
    library,
    topology,
    send(key, command) {
      if (client.isClosed === true) return refuse();
      const options =
        topology === "standalone"
          ? asStrings
          : { decoder: decodeStrings, route: { type: "primarySlotKey", key } };
      return client.customCommand(command, options).catch(rethrow);
    },
    close: () => subscriptions.close(),
  };
  if (!canSubscribe(client, topology)) return connection;
  return {
    ...connection,
    subscribe: (channel, listener) =>
      client.isClosed === true ? refuse() : subscriptions.subscribe(channel, listener),
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

function subscriberOf(client: GlideClient, topology: RedisConnection["topology"]): OpenSubscriber {
  return (deliver) => {
    const callback = ({ channel, message }: { channel: unknown; message: unknown }) =>
      deliver(String(channel), String(message));
    // A client of its own: on the user's, our messages would arrive among the user's.
    const opening = (client.constructor as unknown as GlideClass).createClient({
      ...client.config,
      protocol: resp3,
      lazyConnect: false,
      pubsubSubscriptions: { channelsAndPatterns: {}, callback },
    });
    const [subscribe, unsubscribe] =
      topology === "standalone"
        ? (["subscribe", "unsubscribeLazy"] as const)
        : (["ssubscribe", "sunsubscribeLazy"] as const);
    return {
      connected: opening,
      subscribe: async (channel) =>
        (await opening)[subscribe](new Set([channel]), subscribeTimeoutMs),
      unsubscribe: async (channel) => (await opening)[unsubscribe](new Set([channel])),
      close: () => opening.then(closeInOrder, () => undefined),
    };

    /** Closed while requests are still on their way to its core, GLIDE complains on stderr. */
    async function closeInOrder(subscriber: GlideSubscriber): Promise<void> {
      await subscriber[unsubscribe](null).catch(() => undefined);
      subscriber.close();
    }
  };
}
