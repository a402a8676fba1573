import { NotConnectedError, type RedisConnection } from "./contract.ts";
import { withKeyPrefix } from "./key-prefix.ts";
import { commandOptionsOf, type DisconnectEmitter } from "./node-redis-options.ts";
import { type OpenSubscriber, Subscriptions } from "./subscriptions.ts";

/** What all clients of node-redis 5 and 6 have in common. */
interface NodeRedisBase extends DisconnectEmitter {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  /** Node-redis 6 keeps its `keyPrefix` option here, and applies it to no raw command. */
  readonly _keyPrefix?: string | Buffer | undefined;
  /** Missing from the Sentinel client of node-redis 5, for which waiters then poll. */
  duplicate?(overrides: object): NodeRedisSubscriber;
}

/** One server: `createClient()`. */
export interface NodeRedisClient extends NodeRedisBase {
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
}

/** The master that Sentinel names: `createSentinel()`. */
export interface NodeRedisSentinel extends NodeRedisBase {
  sendCommand(isReadonly: boolean, args: readonly string[], options: object): Promise<unknown>;
}

export interface NodeRedisSubscriber {
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  subscribe(channel: string, listener: PubSubListener): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
}

export type PubSubListener = (message: string, channel: string) => void;

export const library = "node-redis";

/** A command that was under way when the connection broke is rejected and not sent again. */
export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  const options = commandOptionsOf(client, "reconnecting");
  return {
    ...connection(client, (command) => client.sendCommand(command, options())),
    // One queue, one socket; and what was under way when that broke is rejected.
    line: options,
  };
}

const stringReplies = Object.freeze({ typeMapping: undefined });

/**
 * A command that meets a failover is sent again to the new master, so it may run late. The user's
 * timeout (five seconds in node-redis 6) stays: nothing else ends a command that waits for one.
 */
export function nodeRedisSentinelConnection(client: NodeRedisSentinel): RedisConnection {
  return connection(client, (command) => client.sendCommand(false, command, stringReplies));
}

function connection(
  client: NodeRedisBase,
  send: (command: readonly string[]) => Promise<unknown>,
): RedisConnection {
  const prefix = String(client._keyPrefix ?? "");
  const sender: RedisConnection = {
    library,
    topology: "standalone",
    send(key, command) {
      if (!client.isReady) return refuse(client.isOpen);
      return send(prefix === "" ? command : withKeyPrefix(prefix, key, command));
    },
  };
  const duplicate = client.duplicate?.bind(client);
  if (duplicate === undefined) return sender;
  const subscriptions = new Subscriptions(subscriberOf(duplicate));
  return {
    ...sender,
    subscribe(channel, listener) {
      if (!client.isReady) return refuse(client.isOpen);
      return subscriptions.subscribe(channel, listener);
    },
    close: () => subscriptions.close(),
  };
}

export function refuse(isOpen: boolean): Promise<never> {
  return Promise.reject(new NotConnectedError(library, isOpen ? "connecting" : "closed"));
}

function subscriberOf(duplicate: NonNullable<NodeRedisBase["duplicate"]>): OpenSubscriber {
  return (deliver) => {
    const subscriber = duplicate({ commandOptions: {} });
    const listener: PubSubListener = (message, channel) => deliver(channel, message);
    return {
      // `connect` by itself keeps trying: the first failure is enough to let waiters poll.
      connected: new Promise((resolve, reject) => {
        subscriber.on("error", reject);
        subscriber.connect().then(resolve, reject);
      }),
      subscribe: (channel) => subscriber.subscribe(channel, listener),
      unsubscribe: (channel) => subscriber.unsubscribe(channel),
      close: () => destroy(subscriber),
    };
  };
}

/** Some versions throw for a client that never connected: there is nothing left to close then. */
export async function destroy(subscriber: Pick<NodeRedisSubscriber, "destroy">): Promise<void> {
  try {
    await subscriber.destroy();
  } catch {}
}
