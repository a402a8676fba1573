import { readFileSync } from "node:fs";
import { Redis, type RedisOptions } from "ioredis";
import { Failure, isDenied } from "./failure.ts";
import { describeServer, serverName, type ServerAddress, type TlsFiles } from "./store-address.ts";

export { Redis };

/** Limit for the time to connect to a server; then the server counts as unreachable. */
export const connectMs = 5_000;

/** Server that could not be reached when the store was opened. */
export interface Unreachable {
  /** Name of the node in findings: the address without the database. */
  readonly node: string;
  readonly address: string;
  readonly why: string;
}

export interface RedisClients {
  readonly clients: readonly Redis[];
  readonly unreachable: readonly Unreachable[];
  close(): void;
}

/** Time for which slower servers are awaited after enough servers are ready. */
const latecomerMs = 250;

/**
 * Opens clients for all servers. Waits until `needed` servers are ready, or until each server is
 * ready or has failed. Throws Failure if fewer than `needed` are ready. The clients of the other
 * servers keep trying to connect.
 */
export async function openRedisClients(
  servers: readonly ServerAddress[],
  needed: number,
): Promise<RedisClients> {
  const clients = servers.map((server) => new Redis(redisOptions(server)));
  const close = (): void => {
    for (const client of clients) client.disconnect();
  };
  const outcomes = clients.map(readyOrWhy);
  const settled = await settledOrEnough(outcomes, needed);
  const unreachable = servers.flatMap((server, index) => {
    const why = settled.get(index);
    return why === undefined
      ? []
      : [{ node: serverName(server), address: describeServer(server), why }];
  });
  // This count includes servers that are neither ready nor failed yet. There are such servers only
  // if enough others are ready.
  if (clients.length - unreachable.length >= needed) return { clients, unreachable, close };
  close();
  const reasons = unreachable.map(({ address, why }) => `${address}: ${why}`).join("; ");
  if (isDenied(reasons)) throw new Failure("denied", `the server refused us: ${reasons}`);
  const of = clients.length === 1 ? "" : ` (needs ${needed} of ${clients.length} servers)`;
  throw new Failure("unavailable", `cannot reach the store${of}: ${reasons}`);
}

/**
 * Resolves to the outcomes by server index, when all are known or soon after `needed` servers are
 * ready.
 */
function settledOrEnough(
  outcomes: readonly Promise<string | undefined>[],
  needed: number,
): Promise<ReadonlyMap<number, string | undefined>> {
  return new Promise((resolve) => {
    const settled = new Map<number, string | undefined>();
    let timer: NodeJS.Timeout | undefined;
    const end = (): void => {
      clearTimeout(timer);
      resolve(settled);
    };
    for (const [index, outcome] of outcomes.entries()) {
      void outcome.then((why) => {
        settled.set(index, why);
        const ready = [...settled.values()].filter((one) => one === undefined).length;
        if (settled.size === outcomes.length) end();
        else if (needed > 0 && ready >= needed) timer ??= setTimeout(end, latecomerMs);
      });
    }
  });
}

/** Resolves to undefined when the client is ready, or to the reason why it is not. */
function readyOrWhy(client: Redis): Promise<string | undefined> {
  return new Promise((resolve) => {
    let last: string | undefined;
    const settle = (why: string | undefined): void => {
      clearTimeout(timer);
      client.off("ready", onReady);
      resolve(why);
    };
    const onReady = (): void => settle(undefined);
    const timer = setTimeout(() => {
      settle(last ?? `no answer within ${connectMs / 1_000} s`);
    }, connectMs);
    client.on("ready", onReady);
    // This listener is never removed: without a listener ioredis prints errors to the terminal.
    client.on("error", (error: Error) => {
      last = messageOf(error);
      // After a refused connection, or an error that a retry does not cure, the wait ends at once.
      if (isDenied(last) || /ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|certificate/i.test(last)) {
        settle(last);
      }
    });
  });
}

function messageOf(error: Error): string {
  const inner = (error as AggregateError).errors as readonly Error[] | undefined;
  const text = error.message === "" ? (inner?.[0]?.message ?? error.name) : error.message;
  return text.replaceAll(/\s+/g, " ").trim();
}

export function redisOptions(server: ServerAddress): RedisOptions {
  const { host, port, database, username, password, tls } = server;
  return {
    host,
    port,
    db: database,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls: tlsOptions(tls) }),
    connectTimeout: connectMs,
    disconnectTimeout: 100,
    connectionName: "holdfast-cli",
    // No command is queued, because a lock command must not be sent later than its caller expects.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: null,
    retryStrategy: (times) => Math.min(100 * times, 1_000),
  };
}

function tlsOptions({ ca, cert, key, servername }: TlsFiles): NonNullable<RedisOptions["tls"]> {
  const read = (path: string): string => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      throw new Failure("misuse", `cannot read ${path}: ${(error as Error).message}`, error);
    }
  };
  return {
    ...(ca === undefined ? {} : { ca: read(ca) }),
    ...(cert === undefined ? {} : { cert: read(cert) }),
    ...(key === undefined ? {} : { key: read(key) }),
    ...(servername === undefined ? {} : { servername }),
  };
}
