import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished } from "vitest";
import type { CreateLocksOptions, Locks } from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { wireFormat } from "../../src/stores/redis/quorum/shards.ts";
import { dial, openLocks, type RedisBench } from "../support/redis-harness.ts";
import type { RedisServer } from "../support/redis-server.ts";

/**
 * The shortest TTL that is comfortable on a busy machine: a quarantine lasts this long and a little
 * more. A first start needs servers that have been up for two whole seconds.
 */
export const maxTtl = 1_000;

/** A manager with admission over the bench's servers; nobody needs to be admitted yet. */
export async function openStrict(
  redis: RedisBench,
  store: RedisStoreOptions = {},
  defaults: CreateLocksOptions = {},
): Promise<Locks> {
  // A busy machine is not a node that is down.
  const nodeTimeout = "3s";
  const options: RedisStoreOptions = { admission: "strict", maxTtl, nodeTimeout, ...store };
  return openLocks(await redis.connectAll(), options, { ttl: maxTtl, ...defaults });
}

/** What a first start leaves on a server, without the wait for it. */
export async function admit(server: RedisServer, ttlMaxMs = maxTtl): Promise<void> {
  const rid = /run_id:(\w+)/.exec(String(await server.command("INFO", "server")))?.[1] ?? "";
  const state = ["st", "A", "ever", "1", "mode", "bootstrap", "since", "0"];
  const format = ["fmt", wireFormat, "max", String(ttlMaxMs)];
  await server.command("HSET", "holdfast:node", "rid", rid, ...state, ...format);
}

/** The same on servers that were admitted before. */
export async function openAdmitted(
  redis: RedisBench,
  store: RedisStoreOptions & { readonly maxTtl?: number } = {},
  defaults?: CreateLocksOptions,
): Promise<Locks> {
  await Promise.all(redis.servers.map((server) => admit(server, store.maxTtl)));
  const locks = await openStrict(redis, store, defaults);
  await everyNodeVotes(locks);
  return locks;
}

export async function states(locks: Locks): Promise<string[]> {
  return (await locks.nodes()).map(({ admission }) => admission);
}

/** A bound for what takes one quarantine or one first start, not a claim about how long. */
export async function everyNodeVotes(locks: Locks): Promise<void> {
  await expect
    .poll(async () => [...new Set(await states(locks))], { timeout: 30_000 })
    .toEqual(["admitted"]);
}

/** What one node's record says; null where it has no such field. */
export async function field(server: RedisServer, name: string): Promise<string | null> {
  return (await server.command("HGET", "holdfast:node", name)) as string | null;
}

/** A door that always has the same port, whichever server is behind it. */
export interface Door {
  readonly port: number;
  leadTo(port: number): void;
}

export async function openDoor(target: number): Promise<Door> {
  let behind = target;
  const sockets = new Set<Socket>();
  const listener = createServer((client) => {
    const server = connect({ port: behind, host: "127.0.0.1" });
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.pipe(server).pipe(client);
  });
  listener.listen({ port: 0, host: "127.0.0.1" });
  await once(listener, "listening");
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    listener.close();
    await once(listener, "close");
  });
  return {
    port: (listener.address() as AddressInfo).port,
    leadTo(port) {
      behind = port;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Clients of servers at these ports; ready or about to be. */
export function dialAll(ports: readonly number[]): object[] {
  return ports.map((port) => dial(port));
}
