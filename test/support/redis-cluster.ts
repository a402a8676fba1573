import { redisCommand } from "./redis-command.ts";
import { eventually } from "./redis-eventually.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

const slotCount = 16_384;

export interface RedisCluster {
  /** The masters, in the order of the slots they own. */
  readonly nodes: readonly RedisServer[];
  /** The node that owns the slot of `key`, as the cluster itself has it. */
  nodeOf(key: string): Promise<RedisServer>;
  stop(): Promise<void>;
}

/**
 * Starts a Redis Cluster of masters only and waits until each of them calls it complete. A node
 * that is killed takes its own slots down and no others.
 */
export async function startRedisCluster(count = 3): Promise<RedisCluster> {
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
  args.push("--cluster-require-full-coverage", "no");
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis({ args })));
  const share = Math.ceil(slotCount / count);
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    await Promise.all(
      nodes.map(async (node, index) => {
        const last = Math.min((index + 1) * share, slotCount) - 1;
        await node.command("CLUSTER", "SET-CONFIG-EPOCH", String(index + 1));
        await node.command("CLUSTER", "ADDSLOTSRANGE", String(index * share), String(last));
      }),
    );
    await meet(nodes);
    await Promise.all(nodes.map((node) => eventually(() => isComplete(node.port, count))));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    nodes,
    stop,
    async nodeOf(key) {
      const slot = Number(await nodes[0]?.command("CLUSTER", "KEYSLOT", key));
      const owner = nodes[Math.floor(slot / share)];
      if (owner === undefined) throw new Error(`nobody owns slot ${slot}`);
      return owner;
    },
  };
}

async function meet(nodes: readonly RedisServer[]): Promise<void> {
  const [first, ...others] = nodes;
  for (const node of others) {
    await first?.command("CLUSTER", "MEET", node.host, String(node.port));
  }
}

async function isComplete(port: number, count: number): Promise<boolean> {
  const info = String(await redisCommand(port, ["CLUSTER", "INFO"]));
  return (
    info.includes("cluster_state:ok") &&
    info.includes(`cluster_slots_assigned:${slotCount}`) &&
    info.includes(`cluster_known_nodes:${count}`)
  );
}
