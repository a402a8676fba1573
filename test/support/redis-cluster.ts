import { redisCommand } from "../../tools/redis/redis-connection.mjs";
import { eventually } from "./redis-eventually.ts";
import { isMaster, untilInStep } from "./redis-replicas.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";

const slotCount = 16_384;

export interface RedisCluster {
  /** Masters, in the order of the slots they own. */
  readonly nodes: readonly RedisServer[];
  /** Replicas, one for each master in the same order; none unless requested. */
  readonly replicas: readonly RedisServer[];
  /** Returns the node that had the slot of `key` at the start. */
  nodeOf(key: string): Promise<RedisServer>;
  stop(): Promise<void>;
}

/**
 * Starts a Redis Cluster of masters, each with a replica if requested, and waits until each of them
 * reports it complete. If a node is killed, only its own slots are down, until its replica has
 * taken them over.
 */
export async function startRedisCluster(count = 3, withReplicas = false): Promise<RedisCluster> {
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
  args.push("--cluster-require-full-coverage", "no");
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis({ args })));
  const replicas = withReplicas
    ? await Promise.all(Array.from({ length: count }, () => startRedis({ args })))
    : [];
  const share = Math.ceil(slotCount / count);
  const stop = async () => {
    await Promise.all([...nodes, ...replicas].map((node) => node.stop()));
  };
  try {
    await Promise.all(
      nodes.map(async (node, index) => {
        const last = Math.min((index + 1) * share, slotCount) - 1;
        await node.command("CLUSTER", "SET-CONFIG-EPOCH", String(index + 1));
        await node.command("CLUSTER", "ADDSLOTSRANGE", String(index * share), String(last));
      }),
    );
    const all = [...nodes, ...replicas];
    await meet(all);
    await Promise.all(all.map((node) => eventually(() => isComplete(node.port, all.length))));
    await Promise.all(
      replicas.map(async (replica, index) => {
        const master = nodes[index];
        if (master === undefined) return;
        await master.command("CONFIG", "SET", "repl-diskless-sync-delay", "0");
        const id = await idOf(master);
        await eventually(() => replica.command("CLUSTER", "REPLICATE", id));
        await untilInStep(replica);
        // A master can vote for a replica only once it knows that replica.
        await Promise.all(nodes.map((node) => eventually(() => knowsReplicaOf(node, id))));
      }),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    nodes,
    replicas,
    stop,
    async nodeOf(key) {
      const slot = Number(await nodes[0]?.command("CLUSTER", "KEYSLOT", key));
      const owner = nodes[Math.floor(slot / share)];
      if (owner === undefined) throw new Error(`slot ${slot} has no owner`);
      return owner;
    },
  };
}

/** Returns the id of a node in its cluster. */
export async function idOf(node: RedisServer): Promise<string> {
  return String(await node.command("CLUSTER", "MYID"));
}

/**
 * Makes a replica the master of its slots. The server gives up a failover that has too few votes
 * after five seconds and does not repeat it. So the request is repeated until it has succeeded.
 */
export async function failOverTo(replica: RedisServer): Promise<void> {
  for (let round = 0; round < 6 && !(await isMaster(replica)); round += 1) {
    await replica.command("CLUSTER", "FAILOVER");
    await eventually(() => isMaster(replica), 6_000).catch(() => undefined);
  }
  await eventually(() => isMaster(replica));
}

/** Moves a slot with its keys, one key after another, as redis-cli does. */
export async function moveSlot(
  cluster: RedisCluster,
  slot: number,
  from: RedisServer,
  to: RedisServer,
): Promise<void> {
  const [source, target] = await Promise.all([idOf(from), idOf(to)]);
  const number = String(slot);
  await to.command("CLUSTER", "SETSLOT", number, "IMPORTING", source);
  await from.command("CLUSTER", "SETSLOT", number, "MIGRATING", target);
  for (let round = 0; round < 1_000; round += 1) {
    const keys = (await from.command("CLUSTER", "GETKEYSINSLOT", number, "1")) as string[];
    if (keys.length === 0) break;
    await from.command("MIGRATE", to.host, String(to.port), "", "0", "5000", "KEYS", ...keys);
  }
  // The new owner is notified first: no other node may receive the change before it.
  await to.command("CLUSTER", "SETSLOT", number, "NODE", target);
  await from.command("CLUSTER", "SETSLOT", number, "NODE", target);
  for (const node of cluster.nodes) {
    if (node !== from && node !== to) {
      await node.command("CLUSTER", "SETSLOT", number, "NODE", target);
    }
  }
}

async function meet(nodes: readonly RedisServer[]): Promise<void> {
  const [first, ...others] = nodes;
  for (const node of others) {
    await first?.command("CLUSTER", "MEET", node.host, String(node.port));
  }
}

async function knowsReplicaOf(node: RedisServer, masterId: string): Promise<boolean> {
  return String(await node.command("CLUSTER", "NODES")).includes(`slave ${masterId}`);
}

async function isComplete(port: number, count: number): Promise<boolean> {
  const info = String(await redisCommand(port, ["CLUSTER", "INFO"]));
  return (
    info.includes("cluster_state:ok") &&
    info.includes(`cluster_slots_assigned:${slotCount}`) &&
    info.includes(`cluster_known_nodes:${count}`)
  );
}
