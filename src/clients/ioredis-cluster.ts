import type { RedisConnection } from "./contract.ts";
import { firstConnectOf } from "./first-connect.ts";
import { hashSlot } from "./hash-slot.ts";
import { openIoredisSubscriber, type IoredisDuplicator } from "./ioredis-subscriber.ts";
import { connectWatch, library, refuse } from "./ioredis.ts";
import { lastErrorOf, notConnectedTo } from "./last-error.ts";
import { neverSubscribed, NodeSubscriptions } from "./subscriptions.ts";

/** The part of a `Cluster` of ioredis 5 or 6, or of iovalkey, that is used here. */
export interface IoredisCluster {
  readonly isCluster: true;
  readonly status: string;
  /** Nodes that serve each slot, as "host:port". The master comes first. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  connect(): Promise<unknown>;
  nodes(role?: "master"): readonly ClusterMember[];
  on(event: "+node", listener: (member: ClusterMember) => void): unknown;
  createBuiltinCommand(name: string): { readonly string: BuiltinCommand };
}

/** Connection to one server of the Cluster. */
interface ClusterMember extends IoredisDuplicator {
  readonly options: { readonly host?: string; readonly port?: number };
  on(event: "close", listener: () => void): unknown;
}

type BuiltinCommand = (this: IoredisCluster, args: string[]) => Promise<unknown>;

/**
 * Returns the connection for a Cluster client.
 *
 * Limit: an adapter cannot switch off the library's own retries. A command to a lost node is
 * retried `maxRedirections` times with pauses of `retryDelayOnFailover`, so it may run one or two
 * seconds late. Plain read commands follow `scaleReads`. Scripts always go to the master.
 */
export function ioredisClusterConnection(client: IoredisCluster): RedisConnection {
  const commands = new Map<string, BuiltinCommand>();
  lastErrorOf(client);
  const subscriptions = new NodeSubscriptions<ClusterMember>((node, events) =>
    openIoredisSubscriber(node, "sharded", events),
  );
  return {
    library,
    topology: "cluster",
    send(_key, command) {
      if (client.status !== "ready") return refuse(client);
      const [name = "", ...args] = command;
      let run = commands.get(name);
      if (run === undefined) {
        // Keeps the command out of auto-pipelining, in which iovalkey and older versions of ioredis
        // route a script by its digest instead of its keys.
        run = client.createBuiltinCommand(name.toLowerCase()).string;
        commands.set(name, run);
      }
      return run.call(client, args);
    },
    firstConnect: firstConnectOf(client, connectWatch(client)),
    resendEpoch: closedCounter(client),
    subscribe(channel, listener) {
      const key = client.slots?.[hashSlot(channel)]?.[0] ?? "";
      const node = client.status === "ready" ? masterAt(client, key) : undefined;
      if (node !== undefined) return subscriptions.subscribe(key, node, channel, listener);
      return neverSubscribed(listener, notConnectedTo(client, library, client.status));
    },
  };
}

/** Counter of each client. Several connections of one client share it. */
const watched = new WeakMap<IoredisCluster, () => number>();

/**
 * Returns a function that counts closed connections to servers of the Cluster. A command in flight
 * on a closed connection may be sent again by the library.
 */
function closedCounter(client: IoredisCluster): () => number {
  const known = watched.get(client);
  if (known !== undefined) return known;
  let closed = 0;
  const watch = (member: ClusterMember): void => {
    member.on("close", () => {
      closed += 1;
    });
  };
  for (const member of client.nodes()) watch(member);
  client.on("+node", watch);
  const counter = (): number => closed;
  watched.set(client, counter);
  return counter;
}

function masterAt(client: IoredisCluster, key: string): ClusterMember | undefined {
  return client
    .nodes("master")
    .find(({ options: { host = "127.0.0.1", port = 6379 } }) => `${host}:${port}` === key);
}
