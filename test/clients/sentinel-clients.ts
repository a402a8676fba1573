import { Redis as Redis5 } from "ioredis";
import { Redis as Redis6 } from "ioredis6";
import { Redis as Valkey } from "iovalkey";
import { createSentinel as createSentinel6 } from "redis";
import { createSentinel as createSentinel5 } from "redis5";
import type { RedisSentinel } from "../support/redis-sentinel.ts";
import type { OpenClient } from "./client-kinds.ts";

export interface SentinelLibrary {
  readonly name: string;
  /** Returns a client that is not connected yet. */
  readonly open: (sentinel: RedisSentinel) => OpenClient & { connect(): Promise<unknown> };
}

function viaIoredis(Redis: typeof Redis5 | typeof Redis6 | typeof Valkey): SentinelLibrary["open"] {
  const Client = Redis as typeof Redis5;
  return ({ sentinels, name }) => {
    const client = new Client({
      sentinels: [...sentinels],
      name,
      retryStrategy: () => 50,
      lazyConnect: true,
    });
    client.on("error", () => undefined);
    return { client, connect: () => client.connect(), close: () => client.disconnect() };
  };
}

function viaNodeRedis(
  create: typeof createSentinel5 | typeof createSentinel6,
): SentinelLibrary["open"] {
  const createOne = create as typeof createSentinel6;
  return ({ sentinels, name }) => {
    const client = createOne({
      name,
      sentinelRootNodes: [...sentinels],
      scanInterval: 100,
      nodeClientOptions: { socket: { reconnectStrategy: 50 } },
    });
    client.on("error", () => undefined);
    return { client, connect: () => client.connect(), close: () => client.destroy() };
  };
}

export const sentinelLibraries: readonly SentinelLibrary[] = [
  { name: "ioredis 5", open: viaIoredis(Redis5) },
  { name: "ioredis 6", open: viaIoredis(Redis6) },
  { name: "iovalkey", open: viaIoredis(Valkey) },
  { name: "node-redis 5", open: viaNodeRedis(createSentinel5) },
  { name: "node-redis 6", open: viaNodeRedis(createSentinel6) },
];
