import { GlideClient, GlideClusterClient, Logger } from "@valkey/valkey-glide";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis";
import { Cluster as Cluster6, Redis as Redis6 } from "ioredis6";
import { Cluster as ValkeyCluster, Redis as Valkey } from "iovalkey";
import { createClient as createClient6, createCluster as createCluster6 } from "redis";
import { createClient as createClient5, createCluster as createCluster5 } from "redis5";
import { eventually } from "../support/redis-eventually.ts";
import type { RedisClient } from "../../src/clients/redis-client.ts";

// GLIDE's core writes each error to stderr by default.
Logger.setLoggerConfig("off");

export interface OpenClient {
  readonly client: RedisClient;
  close(): unknown;
}

/** One library in one version: how a test opens a client, with options of that library. */
export interface ClientKind {
  readonly name: string;
  readonly library: string;
  /** True if the client shows that it is not connected. GLIDE does not. */
  readonly showsState: boolean;
  /** Resolves when the client is connected. */
  open(port: number, options?: object): Promise<OpenClient>;
  /** Returns a client that has just begun to connect. */
  readonly openConnecting?: (port: number) => OpenClient;
  readonly openConnectingCluster?: (ports: readonly number[]) => OpenClient;
  /** Returns a client that was not requested to connect, and a function that connects it. */
  readonly openIdle?: (port: number) => OpenClient & { connect(): Promise<unknown> };
  openCluster(ports: readonly number[], options?: object): Promise<OpenClient>;
}

const host = "127.0.0.1";
// Short, so that clients reconnect quickly after a test has restarted the server.
const retryStrategy = () => 50;

function ioredisKind(
  name: string,
  Redis: typeof Redis5 | typeof Redis6 | typeof Valkey,
  Cluster: typeof Cluster5 | typeof Cluster6 | typeof ValkeyCluster,
): ClientKind {
  const Client = Redis as typeof Redis5;
  const ClusterClient = Cluster as typeof Cluster5;
  const opened = (client: Redis5) => {
    client.on("error", () => undefined);
    return { client, close: () => client.disconnect(), connect: () => client.connect() };
  };
  return {
    name,
    library: "ioredis",
    showsState: true,
    async open(port, options = {}) {
      const client = new Client({ host, port, retryStrategy, ...options });
      const result = opened(client);
      await eventually(() => client.status === "ready");
      return result;
    },
    openConnecting: (port) => opened(new Client({ host, port, retryStrategy })),
    openConnectingCluster(ports) {
      const client = new ClusterClient(ports.map((port) => ({ host, port })));
      client.on("error", () => undefined);
      return { client, close: () => client.disconnect() };
    },
    openIdle: (port) => opened(new Client({ host, port, retryStrategy, lazyConnect: true })),
    async openCluster(ports, options = {}) {
      const nodes = ports.map((port) => ({ host, port }));
      const client = new ClusterClient(nodes, options);
      client.on("error", () => undefined);
      await eventually(() => client.status === "ready");
      return { client, close: () => client.disconnect() };
    },
  };
}

function nodeRedisKind(
  name: string,
  create: typeof createClient5 | typeof createClient6,
  createForCluster: typeof createCluster5 | typeof createCluster6,
): ClientKind {
  const createOne = create as typeof createClient6;
  const createMany = createForCluster as typeof createCluster6;
  const socket = { reconnectStrategy: 50 };
  const opened = (port: number, options: object) => {
    const client = createOne({ socket: { host, port, ...socket }, ...options });
    client.on("error", () => undefined);
    const close = () => {
      if (client.isOpen) client.destroy();
    };
    return { client, close, connect: () => client.connect() };
  };
  return {
    name,
    library: "node-redis",
    showsState: true,
    async open(port, options = {}) {
      const result = opened(port, options);
      await result.connect();
      return result;
    },
    openConnecting(port) {
      const result = opened(port, {});
      result.connect().catch(() => undefined);
      return result;
    },
    openConnectingCluster(ports) {
      const rootNodes = ports.map((port) => ({ socket: { host, port } }));
      const client = createMany({ rootNodes, defaults: { socket } });
      client.on("error", () => undefined);
      client.connect().catch(() => undefined);
      return { client, close: () => client.destroy() };
    },
    openIdle: (port) => opened(port, {}),
    async openCluster(ports, options = {}) {
      const rootNodes = ports.map((port) => ({ socket: { host, port } }));
      const client = createMany({ rootNodes, defaults: { socket }, ...options });
      client.on("error", () => undefined);
      await client.connect();
      return { client, close: () => client.destroy() };
    },
  };
}

const glideKind: ClientKind = {
  name: "valkey-glide 2",
  library: "valkey-glide",
  showsState: false,
  async open(port, options = {}) {
    const connectionBackoff = { numberOfRetries: 100, factor: 1, exponentBase: 2 };
    const addresses = [{ host, port }];
    const client = await GlideClient.createClient({ addresses, connectionBackoff, ...options });
    return { client, close: () => client.close() };
  },
  async openCluster(ports, options = {}) {
    const addresses = ports.map((port) => ({ host, port }));
    const client = await GlideClusterClient.createClient({ addresses, ...options });
    return { client, close: () => client.close() };
  },
};

export const ioredisKinds: readonly ClientKind[] = [
  ioredisKind("ioredis 5", Redis5, Cluster5),
  ioredisKind("ioredis 6", Redis6, Cluster6),
  ioredisKind("iovalkey", Valkey, ValkeyCluster),
];

export const nodeRedisKinds: readonly ClientKind[] = [
  nodeRedisKind("node-redis 5", createClient5, createCluster5),
  nodeRedisKind("node-redis 6", createClient6, createCluster6),
];

export const glideKinds: readonly ClientKind[] = [glideKind];

export const allKinds: readonly ClientKind[] = [...ioredisKinds, ...nodeRedisKinds, ...glideKinds];
