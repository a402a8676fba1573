import { expect } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import type { CreateLocksOptions, Locks } from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { wireFormat } from "../../src/stores/redis/commands/keys.ts";
import { dial, openLocks, type RedisBench } from "../support/redis-harness.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

/**
 * The shortest TTL that works on a busy machine. A quarantine lasts this long and a little more. A
 * first start needs servers that have been up for two whole seconds.
 */
export const maxTtl = 1_000;

/** Opens a manager with strict admission on the servers, which may not be admitted yet. */
export async function openStrict(
  redis: RedisBench,
  store: RedisStoreOptions = {},
  defaults: CreateLocksOptions = {},
): Promise<Locks> {
  // A busy machine must not look like a node that is down.
  const nodeTimeout = "3s";
  const options: RedisStoreOptions = { admission: "strict", maxTtl, nodeTimeout, ...store };
  return openLocks(await redis.connectAll(), options, { ttl: maxTtl, ...defaults });
}

/** Writes the record that a first start leaves on a server, without the wait for it. */
export async function admit(server: RedisServer, ttlMaxMs = maxTtl): Promise<void> {
  const rid = /run_id:(\w+)/.exec(String(await server.command("INFO", "server")))?.[1] ?? "";
  const state = ["st", "A", "ever", "1", "mode", "bootstrap", "since", "0"];
  const format = ["fmt", wireFormat, "max", String(ttlMaxMs)];
  await server.command("HSET", "holdfast:node", "rid", rid, ...state, ...format);
}

/** Opens such a manager on servers that are already admitted. */
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

/** Waits until every node is admitted. The limit is generous: no test measures that time. */
export async function everyNodeVotes(locks: Locks): Promise<void> {
  await expect
    .poll(async () => [...new Set(await states(locks))], { timeout: 30_000 })
    .toEqual(["admitted"]);
}

/** Returns a field of a node's record, or null if it is missing. */
export async function field(server: RedisServer, name: string): Promise<string | null> {
  return (await server.command("HGET", "holdfast:node", name)) as string | null;
}

/** A proxy that can lead to one server after another. */
export interface Door {
  readonly port: number;
  leadTo(port: number): void;
}

/** Opens a proxy to the server on `target`. It is closed when the test is over. */
export async function openDoor(target: number): Promise<Door> {
  const proxy = await startTcpProxy(target);
  return {
    port: proxy.port,
    leadTo(port) {
      proxy.target = port;
      proxy.reset();
    },
  };
}

/** Creates clients for servers at these ports. They may still be connecting. */
export function dialAll(ports: readonly number[]): RedisClient[] {
  return ports.map((port) => dial(port));
}
