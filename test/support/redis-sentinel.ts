import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { redisCommand } from "./redis-command.ts";
import { eventually } from "./redis-eventually.ts";
import { freePort } from "./redis-port.ts";
import { killRedis, makeDirectory, removeDirectory, spawnRedis } from "./redis-process.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

const masterName = "holdfast";

export interface RedisSentinel {
  /** The name the sentinels know the master by. */
  readonly name: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  /** The port that the sentinels name as the master's now. */
  masterPort(): Promise<number>;
  /** Asks for a failover and waits until the sentinels name the other server. */
  failover(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a master, a replica and `count` sentinels, and waits until they know of each other. */
export async function startRedisSentinel(count = 1): Promise<RedisSentinel> {
  const master = await startRedis();
  // A replica of this age takes its first full copy at once instead of after five seconds.
  await master.command("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(master.port)] });
  await eventually(async () =>
    String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
  );
  const started = await Promise.all(
    Array.from({ length: count }, () => startSentinel(master.port, Math.floor(count / 2) + 1)),
  );
  const ask = (...command: string[]) => redisCommand(started[0]?.port ?? 0, command);
  const masterPort = async () => {
    const address = await ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName);
    return Number((address as string[])[1]);
  };
  await Promise.all(
    started.map(({ port }) =>
      eventually(async () => knows(await redisCommand(port, ["INFO", "sentinel"]), count)),
    ),
  );
  return {
    name: masterName,
    master,
    replica,
    sentinels: started.map(({ port }) => ({ host: "127.0.0.1", port })),
    masterPort,
    async failover() {
      const before = await masterPort();
      await eventually(() => ask("SENTINEL", "FAILOVER", masterName));
      await eventually(async () => (await masterPort()) !== before);
    },
    async stop() {
      await Promise.all(started.map((sentinel) => sentinel.stop()));
      await Promise.all([master.stop(), replica.stop()]);
    },
  };
}

function knows(info: unknown, count: number): boolean {
  return String(info).includes(`slaves=1,sentinels=${count}`);
}

async function startSentinel(masterPort: number, quorum: number) {
  const port = await freePort();
  const dir = makeDirectory();
  // A sentinel keeps what it learns in its own configuration file, so it needs a real one.
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
      await killRedis(child);
      removeDirectory(dir);
    },
  };
}
