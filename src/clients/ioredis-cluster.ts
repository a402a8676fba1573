import type { RedisConnection } from "./contract.ts";
import { type IoredisSubscriber, refuse } from "./ioredis.ts";
import { type OpenSubscriber, Subscriptions } from "./subscriptions.ts";

/** What is used of a `Cluster` of ioredis 5 or 6 or of iovalkey. */
export interface IoredisCluster {
  readonly isCluster: true;
  readonly status: string;
  readonly options: {
    /** Only versions that know this option have sharded pub/sub that follows the slots. */
    readonly shardedSubscribers?: boolean;
    readonly redisOptions?: object;
  };
  connect(): Promise<unknown>;
  createBuiltinCommand(name: string): { readonly string: BuiltinCommand };
  duplicate(startupNodes: never[], override: object): ShardedSubscriber;
}

type BuiltinCommand = (this: IoredisCluster, args: string[]) => Promise<unknown>;

interface ShardedSubscriber extends Omit<IoredisSubscriber, "subscribe" | "unsubscribe"> {
  ssubscribe(channel: string): Promise<unknown>;
  sunsubscribe(channel: string): Promise<unknown>;
}

/**
 * Serves a Cluster. Its own retries cannot be switched off from here: a command to a node that
 * went away is tried again, `maxRedirections` times with pauses of `retryDelayOnFailover`, so it
 * may run a second or two late. Reads by plain commands follow `scaleReads`, scripts never do.
 */
export function ioredisClusterConnection(client: IoredisCluster): RedisConnection {
  const commands = new Map<string, BuiltinCommand>();
  const subscriptions = new Subscriptions(subscriberOf(client));
  const connection: RedisConnection = {
    library: "ioredis",
    topology: "cluster",
    send(_key, command) {
      if (client.status !== "ready") return refuse(client);
      const [name = "", ...args] = command;
      let run = commands.get(name);
      if (run === undefined) {
        // A command made this way stays out of auto-pipelining, which in iovalkey and older
        // ioredis routes a script by its digest and not by its keys.
        run = client.createBuiltinCommand(name.toLowerCase()).string;
        commands.set(name, run);
      }
      return run.call(client, args);
    },
    close: () => subscriptions.close(),
  };
  if (client.options.shardedSubscribers === undefined) return connection;
  return {
    ...connection,
    subscribe(channel, listener) {
      if (client.status !== "ready") return refuse(client);
      return subscriptions.subscribe(channel, listener);
    },
  };
}

function subscriberOf(client: IoredisCluster): OpenSubscriber {
  return (deliver) => {
    const subscriber = client.duplicate([], {
      lazyConnect: true,
      shardedSubscribers: true,
      enableOfflineQueue: true,
      enableAutoPipelining: false,
      keyPrefix: "",
      // Connections to nodes nobody subscribes at stay closed.
      redisOptions: { ...client.options.redisOptions, lazyConnect: true, keyPrefix: "" },
    });
    subscriber.on("error", () => undefined);
    subscriber.on("smessage", deliver);
    return {
      connected: subscriber.connect(),
      // Async, because the library throws before it has learnt who owns the channel's slot.
      subscribe: async (channel) => subscriber.ssubscribe(channel),
      unsubscribe: async (channel) => subscriber.sunsubscribe(channel),
      close: () => subscriber.disconnect(),
    };
  };
}
