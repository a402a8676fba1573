import type { Store } from "../../core/store.ts";
import { embedded } from "../../stores/embedded/index.ts";
import { redis, redlock } from "../../stores/redis/index.ts";
import { embeddedOptions, storeOptions } from "../connect.ts";
import { Failure } from "../failure.ts";
import type { StoreAddress } from "../store-address.ts";

/** Store of the demo, and the function that closes it. */
export interface DemoStore {
  readonly store: Store;
  readonly close: () => void;
}

/**
 * True for the embedded store, the only store that detects a dead process. With other stores, the
 * lease of a dead process must expire.
 */
export function noticesDeadHolders({ kind }: StoreAddress): boolean {
  return kind === "embedded";
}

export async function openDemoStore(address: StoreAddress): Promise<DemoStore> {
  if (address.kind === "embedded") {
    return { store: embedded(address.directory, embeddedOptions(address)), close: () => undefined };
  }
  if (address.kind === "postgres") {
    const { openPostgres } = await import("../postgres-pool.ts");
    const { store, end } = openPostgres(address);
    return { store, close: () => void end() };
  }
  const { Redis, redisOptions } = await import("../redis-clients.ts");
  const [first, ...rest] = address.servers.map((server) => new Redis(redisOptions(server)));
  if (first === undefined) throw new Failure("misuse", "the store has no server");
  const clients = [first, ...rest];
  // Errors are reported by the locks. Without a listener ioredis prints them to the console.
  for (const client of clients) client.on("error", () => undefined);
  const settings = storeOptions(address.settings);
  const store = address.kind === "redlock" ? redlock(clients, settings) : redis(first, settings);
  return { store, close: () => void clients.map((client) => client.disconnect()) };
}
