import { eventually } from "./redis-eventually.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";

/** Starts `count` replicas of a master, and waits until they are in step with it. */
export async function startReplicas(master: RedisServer, count: number): Promise<RedisServer[]> {
  // The first full copy begins at once instead of after five seconds.
  await master.command("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  const args = ["--replicaof", "127.0.0.1", String(master.port)];
  const replicas = await Promise.all(Array.from({ length: count }, () => startRedis({ args })));
  await Promise.all(replicas.map(untilInStep));
  return replicas;
}

export async function untilInStep(replica: RedisServer): Promise<void> {
  await eventually(async () =>
    String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
  );
}

export async function isMaster(server: RedisServer): Promise<boolean> {
  return String(await server.command("INFO", "replication")).includes("role:master");
}
