import { NotConnectedError, type RedisConnection } from "./contract.ts";
import { firstConnectOf } from "./first-connect.ts";
import { hashSlot } from "./hash-slot.ts";
import { openIoredisSubscriber, type IoredisDuplicator } from "./ioredis-subscriber.ts";
import { connectWatch, library, refuse } from "./ioredis.ts";
import { neverSubscribed, NodeSubscriptions } from "./subscriptions.ts";

/** What is used of a `Cluster` of ioredis 5 or 6 or of iovalkey. */
export interface IoredisCluster {
  readonly isCluster: true;
  readonly status: string;
  /** For each slot the nodes that serve it, as "host:port", its master first. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  connect(): Promise<unknown>;
  nodes(role?: "master"): readonly ClusterMember[];
  on(event: "+node", listener: (member: ClusterMember) => void): unknown;
  createBuiltinCommand(name: string): { readonly string: BuiltinCommand };
}

/** The connection to one server of the Cluster. */
interface ClusterMember extends IoredisDuplicator {
  readonly options: { readonly host?: string; readonly port?: number };
  on(event: "close", listener: () => void): unknown;
}

type BuiltinCommand = (this: IoredisCluster, args: string[]) => Promise<unknown>;

/**
 * Serves a Cluster. Its own retries cannot be switched off from here: a command to a node that
 * went away is tried again, `maxRedirections` times with pauses of `retryDelayOnFailover`, so it
 * may run a second or two late. Reads by plain commands follow `scaleReads`, scripts never do.
 */
export function ioredisClusterConnection(client: IoredisCluster): RedisConnection {
  const commands = new Map<string, BuiltinCommand>();
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
        // A command made this way stays out of auto-pipelining, which in iovalkey and older
        // ioredis routes a script by its digest and not by its keys.
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
      return neverSubscribed(listener, new NotConnectedError(library, client.status));
    },
  };
}

/** One watch for each client, however many connections are made of it. */
const watched = new WeakMap<IoredisCluster, () => number>();

/**
 * Returns what counts the closed connections to its servers: what was under way on one of them may
 * be sent again, by the library's Cluster or by its client for that server.
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
