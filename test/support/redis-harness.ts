import { setImmediate } from "node:timers/promises";
import { Redis, type RedisOptions } from "ioredis";
import { afterAll, beforeAll, beforeEach, onTestFinished } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import type { RedisConnection } from "../../src/clients/contract.ts";
import { connectionOf } from "../../src/clients/recognise.ts";
import type { LockEventName, LockEvents, Locks } from "../../src/index.ts";
import { createLocks, type CreateLocksOptions } from "../../src/index.ts";
import { redlock, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { watchLeaks } from "./leaks.ts";
import { eventually } from "./redis-eventually.ts";
import { type RedisServer, startRedisServers } from "../../tools/redis/redis-server.mjs";

/** Key that stays on a node for good. It is the only one. */
export const nodeRecordKey = "holdfast:node";

/** Servers of one test file. Each test leaves them running and without a key. */
export class RedisBench {
  readonly servers: RedisServer[] = [];

  server(index: number): RedisServer {
    const server = this.servers[index];
    if (server === undefined) throw new Error(`there is no server ${index}`);
    return server;
  }

  /** Connects a client to each of the first `count` servers. */
  connectAll(count: number = this.servers.length, options?: RedisOptions): Promise<Redis[]> {
    return Promise.all(this.servers.slice(0, count).map(({ port }) => connect(port, options)));
  }

  /** Opens a manager on the first `count` servers, each with a client of its own. */
  async locks(
    count: number = this.servers.length,
    store: RedisStoreOptions = {},
    defaults: CreateLocksOptions = {},
  ): Promise<Locks> {
    return openLocks(await this.connectAll(count), store, defaults);
  }

  /** Returns the value of `key` on each server; null if the key is missing there. */
  values(key: string): Promise<unknown[]> {
    return Promise.all(this.servers.map((server) => server.command("GET", key)));
  }

  /** Waits until every server has `key`, because a lease needs only a quorum. */
  async valuesEverywhere(key: string): Promise<unknown[]> {
    return await eventually(async () => {
      const values = await this.values(key);
      if (values.includes(null)) throw new Error(`only some servers have ${key}`);
      return values;
    });
  }

  /** Makes every node know the manager and its scripts: the first use costs more requests. */
  async warmUp(locks: Locks): Promise<void> {
    const nodes = await locks.nodes();
    const lease = await locks.acquire("warm-up");
    await eventually(async () => {
      const values = await this.values("warm-up");
      return !values.slice(0, nodes.length).includes(null);
    });
    await lease.extend();
    await lease.release();
    await this.untilFree();
  }

  /** Sets `key` on some servers, as a client without Holdfast does. */
  async holdByForeigner(indices: readonly number[], key: string, value = "foreign"): Promise<void> {
    for (const index of indices) {
      await this.server(index).command("SET", key, value, "NX", "PX", "60000");
    }
  }

  async freeByForeigner(indices: readonly number[], key: string): Promise<void> {
    for (const index of indices) await this.server(index).command("DEL", key);
  }

  /** Stops the processes of some servers until they are thawed, at the latest after the test. */
  freeze(...indices: readonly number[]): void {
    for (const index of indices) {
      const server = this.server(index);
      server.pause();
      onTestFinished(() => server.resume());
    }
  }

  thaw(...indices: readonly number[]): void {
    for (const index of indices) this.server(index).resume();
  }

  /** Resolves when no lock is left. Rejects before locks expire by their TTL of 20 s. */
  async untilFree(): Promise<void> {
    await eventually(async () => {
      const left = await this.keysLeft();
      if (left.length > 0) throw new Error(`still there: ${left.join(", ")}`);
    }, 18_000);
  }

  /** Returns a sentence for each lock key on each server. */
  async keysLeft(): Promise<string[]> {
    const found = await Promise.all(
      this.servers.map(async (server, index) => {
        const keys = (await server.command("KEYS", "*")) as string[];
        const locks = keys.filter((key) => key !== nodeRecordKey);
        return locks.map((key) => `the key ${JSON.stringify(key)} on server ${index}`);
      }),
    );
    return found.flat();
  }
}

/** Starts `count` servers for the file that calls it, and watches what its tests leave behind. */
export function shareRedis(count: number, args: readonly string[] = []): RedisBench {
  const bench = new RedisBench();
  beforeAll(async () => {
    bench.servers.push(...(await startRedisServers(count, { args })));
  });
  afterAll(async () => {
    await Promise.all(bench.servers.map((server) => server.stop()));
  });
  // Keys that a failed test left must not make the next one fail.
  beforeEach(async () => {
    await Promise.all(bench.servers.map((server) => server.command("FLUSHALL")));
  });
  watchLeaks({
    async also() {
      const left = await bench.keysLeft();
      // The sockets of these commands take a turn to close.
      await setImmediate();
      await setImmediate();
      return left;
    },
  });
  return bench;
}

/** Returns a client that begins to connect. It is closed when the test is over. */
export function dial(port: number, options: RedisOptions = {}): Redis {
  const client = new Redis({
    host: "127.0.0.1",
    port,
    retryStrategy: () => 50,
    // Limit for the life of the client's own timer after its end.
    disconnectTimeout: 100,
    ...options,
  });
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  return client;
}

/** Returns a connected client. It is closed when the test is over. */
export async function connect(port: number, options: RedisOptions = {}): Promise<Redis> {
  const client = dial(port, options);
  await eventually(() => client.status === "ready");
  return client;
}

/**
 * Opens a manager. It is closed when the test is over. Admission is off by default, because fresh
 * servers may vote only when they are older than the longest TTL.
 */
export function openLocks(
  clients: readonly RedisClient[],
  store: RedisStoreOptions = {},
  defaults: CreateLocksOptions = {},
): Locks {
  const locks = createLocks(redlock(clients.map(numbered), { admission: "off", ...store }), {
    ttl: "20s",
    ...defaults,
  });
  onTestFinished(() => locks.close());
  return locks;
}

/** Hides the address of a client, so that tests name its node by its number. */
export function numbered(client: RedisClient): RedisClient {
  const connection = connectionOf(client);
  return connection === undefined ? client : { ...connection, address: undefined };
}

/** Returns a list that receives every event of one kind from now on. */
export function collect<Name extends LockEventName>(locks: Locks, name: Name): LockEvents[Name][] {
  const seen: LockEvents[Name][] = [];
  locks.on(name, (event) => seen.push(event));
  return seen;
}

/** A connection that records its commands, and counts those without a reply. */
export interface WatchedConnection extends RedisConnection {
  readonly sent: (readonly string[])[];
  unanswered: number;
}

/** Wraps a client. Commands about locks wait for `gate` before they are sent. */
export function watchConnection(client: RedisClient, gate?: Promise<unknown>): WatchedConnection {
  const inner = connectionOf(client);
  if (inner === undefined) throw new Error("the client was not recognised");
  const watched: WatchedConnection = {
    library: inner.library,
    topology: inner.topology,
    sent: [],
    unanswered: 0,
    async send(key, command) {
      watched.unanswered += 1;
      try {
        if (key !== "") await gate;
        watched.sent.push(command);
        return await inner.send(key, command);
      } finally {
        watched.unanswered -= 1;
      }
    },
  };
  return watched;
}

/** Returns the error of a promise that must reject. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected a rejection");
}
