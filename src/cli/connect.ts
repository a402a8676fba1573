import { createLocks } from "../index.ts";
import type { Locks } from "../core/locks.ts";
import type { LockDefaults } from "../core/options.ts";
import type { Duration } from "../core/time/durations.ts";
import type { RedisStoreOptions } from "../stores/redis/index.ts";
import { Failure } from "./failure.ts";
import type { Output } from "./output.ts";
import type { Unreachable } from "./redis-clients.ts";
import { describeStore, storeIdentity } from "./store-address.ts";
import type { StoreAddress, StoreSettings } from "./store-address.ts";

/** A store opened for one command. */
export interface Connected {
  readonly locks: Locks;
  readonly kind: StoreAddress["kind"];
  readonly fencing: boolean;
  readonly description: string;
  readonly identity: string;
  /** Servers that could not be reached when the store was opened. */
  readonly unreachable: readonly Unreachable[];
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly defaults?: LockDefaults;
  /** If false, leases have no fence, provided that the store supports this. */
  readonly fencing?: boolean;
  /** If true, the store is opened even if no server can be reached. */
  readonly withoutServers?: boolean;
  readonly output: Output;
}

/** Limit for the releases at the end; then the connections are closed. */
const farewellMs = 1_000;

/** Opens the store, or fails within a few seconds. Imports only the modules this store needs. */
export async function connect(address: StoreAddress, options: ConnectOptions): Promise<Connected> {
  const about = {
    kind: address.kind,
    description: describeStore(address),
    identity: storeIdentity(address),
  };
  if (address.kind === "embedded") {
    const { embedded } = await import("../stores/embedded/index.ts");
    const store = embedded(address.directory, embeddedOptions(address));
    const locks = createLocks(store, options.defaults);
    return { ...about, locks, fencing: true, unreachable: [], close: () => locks.close() };
  }
  if (address.kind === "postgres") {
    const { connectPostgres } = await import("./postgres-pool.ts");
    const { defaults, withoutServers = false } = options;
    const opened = await connectPostgres(address, defaults, withoutServers);
    return { ...about, ...opened, fencing: true, unreachable: [] };
  }
  const { openRedisClients } = await import("./redis-clients.ts");
  const { redis, redlock } = await import("../stores/redis/index.ts");
  const settings = storeOptions(address.settings, options.fencing);
  const { servers } = address;
  const { withoutServers = false } = options;
  const needed = withoutServers ? 0 : Math.floor(servers.length / 2) + 1;
  const opened = await openRedisClients(servers, needed);
  const { unreachable } = opened;
  for (const { address: server, why } of withoutServers ? [] : unreachable) {
    options.output.warn(`a server cannot be reached: ${server}: ${why}`);
  }
  try {
    const [only] = opened.clients;
    const store =
      address.kind === "redis" && only !== undefined
        ? redis(only, settings)
        : redlock(opened.clients, settings);
    const locks = createLocks(store, options.defaults);
    const close = async (): Promise<void> => {
      // After `farewellMs` the connections are closed without waiting for servers that do not
      // reply. The keys on these servers end with their TTL.
      const timer = setTimeout(() => opened.close(), farewellMs);
      await locks.close();
      clearTimeout(timer);
      opened.close();
    };
    return { ...about, locks, fencing: store.capabilities.fencing, unreachable, close };
  } catch (error) {
    opened.close();
    throw error;
  }
}

/** The store checks the text, and names the option if it is invalid. */
export function embeddedOptions({ maxTtl }: { readonly maxTtl?: string | undefined }): {
  readonly maxTtl?: Duration;
} {
  return maxTtl === undefined ? {} : { maxTtl: maxTtl as Duration };
}

export function storeOptions(settings: StoreSettings, fencing?: boolean): RedisStoreOptions {
  const { prefix, maxTtl, nodeTimeout, admission } = settings;
  const wanted = settings.fencing;
  if (wanted !== undefined && wanted !== "true" && wanted !== "false") {
    throw new Failure("misuse", "expected fencing in a store address to be true or false");
  }
  const without = fencing === false || wanted === "false";
  const given = { prefix, maxTtl, nodeTimeout, admission };
  // The store checks the texts of these options, and names the invalid option in its error.
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(set), ...(without ? { fencing: false } : {}) };
}
