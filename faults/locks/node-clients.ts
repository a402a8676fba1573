import { Redis, type RedisOptions } from "ioredis";

/**
 * `plain`: ioredis with its defaults, apart from a quicker reconnect. `tuned`: settings of a
 * careful user of a library without its own time limits: every command ends within 500 ms, and no
 * command waits in a queue for a connection.
 */
const options: Readonly<Record<"plain" | "tuned", RedisOptions>> = {
  plain: {},
  tuned: {
    commandTimeout: 500,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  },
};

export async function nodeClients(
  ports: readonly number[],
  kind: "plain" | "tuned",
): Promise<Redis[]> {
  const clients = ports.map((port) => {
    const client = new Redis({
      ...options[kind],
      port,
      host: "127.0.0.1",
      retryStrategy: (times) => Math.min(500, times * 50),
      lazyConnect: true,
    });
    // ioredis reconnects by itself; the lock library sees the failed command.
    client.on("error", () => undefined);
    return client;
  });
  // A node that is down right now must not prevent the start.
  await Promise.race([
    Promise.allSettled(clients.map((client) => client.connect())),
    new Promise((resolve) => {
      setTimeout(resolve, 1_000);
    }),
  ]);
  return clients;
}
