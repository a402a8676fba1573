import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { redisCommand } from "../../tools/redis/redis-connection.mjs";
import { eventually } from "./redis-eventually.ts";
import { freePort } from "../../tools/network/free-port.mjs";
import { killChild, makeFolder, removeFolder } from "../../tools/processes/children.mjs";
import { spawnRedis } from "../../tools/redis/redis-process.mjs";
import { startReplicas } from "./redis-replicas.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";

const masterName = "holdfast";

export interface RedisSentinel {
  /** Name of the master in the configuration of the sentinels. */
  readonly name: string;
  readonly master: RedisServer;
  /** First of the replicas. */
  readonly replica: RedisServer;
  /** Servers with data, the first master first. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  /** Returns the master's port as the sentinels report it now. */
  masterPort(): Promise<number>;
  /** Returns the server at that port. */
  masterNow(): Promise<RedisServer>;
  /** Requests a failover and waits until the sentinels report another server. */
  failover(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a master, its replicas and `count` sentinels, and waits until they know of each other. */
export async function startRedisSentinel(count = 1, replicaCount = 1): Promise<RedisSentinel> {
  const master = await startRedis();
  const replicas = await startReplicas(master, replicaCount);
  const [replica] = replicas;
  if (replica === undefined) throw new Error("a sentinel needs a replica to promote");
  const started = await Promise.all(
    Array.from({ length: count }, () => startSentinel(master.port, Math.floor(count / 2) + 1)),
  );
  const send = (...command: string[]) => redisCommand(started[0]?.port ?? 0, command);
  const masterPort = async () => {
    const address = await send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName);
    return Number((address as string[])[1]);
  };
  await Promise.all(
    started.map(({ port }) =>
      eventually(async () => {
        const info = String(await redisCommand(port, ["INFO", "sentinel"]));
        return info.includes(`slaves=${replicaCount},sentinels=${count}`);
      }),
    ),
  );
  return {
    name: masterName,
    master,
    replica,
    servers: [master, ...replicas],
    sentinels: started.map(({ port }) => ({ host: "127.0.0.1", port })),
    masterPort,
    async masterNow() {
      const port = await masterPort();
      const found = [master, ...replicas].find((server) => server.port === port);
      if (found === undefined) throw new Error(`no server of ours is at port ${port}`);
      return found;
    },
    async failover() {
      const before = await masterPort();
      await eventually(() => send("SENTINEL", "FAILOVER", masterName));
      await eventually(async () => (await masterPort()) !== before);
    },
    async stop() {
      await Promise.all(started.map((sentinel) => sentinel.stop()));
      await Promise.all([master, ...replicas].map((server) => server.stop()));
    },
  };
}

/** Connects to the present master. The client is closed when the test is over. */
export async function connectBySentinel(sentinel: RedisSentinel): Promise<Redis> {
  const client = new Redis({
    sentinels: [...sentinel.sentinels],
    name: sentinel.name,
    retryStrategy: () => 50,
    sentinelRetryStrategy: () => 50,
    disconnectTimeout: 100,
  });
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  await eventually(() => client.status === "ready");
  return client;
}

async function startSentinel(masterPort: number, quorum: number) {
  const port = await freePort();
  const dir = makeFolder("holdfast-redis-");
  // A sentinel writes its state into its configuration file, so it needs a real one.
  const file = join(dir, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    "logfile redis.log",
    `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} ${quorum}`,
    `sentinel down-after-milliseconds ${masterName} 1000`,
    `sentinel failover-timeout ${masterName} 5000`,
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  const child = await spawnRedis(port, dir, [file, "--sentinel"]);
  return {
    port,
    async stop() {
      await killChild(child);
      removeFolder(dir);
    },
  };
}
