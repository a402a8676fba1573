import { InvalidOptionError, UnsupportedError } from "../../core/errors.ts";
import type { Store } from "../../core/store.ts";
import { embedded } from "../../stores/embedded/index.ts";
import { redis, redlock } from "../../stores/redis/index.ts";

/** A store to play on, and what has to be closed with it. */
export interface DemoStore {
  readonly store: Store;
  readonly close: () => void;
}

/** Only this store sees that a process is dead; with the others its lease has to run out. */
export function noticesDeadHolders(address: string): boolean {
  return address.startsWith(embeddedScheme);
}

const embeddedScheme = "embedded:";
const redlockScheme = "redlock:";
const expected = "embedded:<directory>, redis://<host> or redlock:redis://<host>,redis://<host>,…";

/** Throws InvalidOptionError for what is no address of a store. */
export function checkStoreAddress(address: string): void {
  if (address.startsWith(embeddedScheme) && address.length > embeddedScheme.length) return;
  const urls = serversOf(address);
  const redisUrl = /^rediss?:\/\/./;
  if (urls.length > 0 && urls.every((url) => redisUrl.test(url) && URL.canParse(url))) return;
  throw new InvalidOptionError("store", expected, address);
}

export async function openDemoStore(address: string): Promise<DemoStore> {
  checkStoreAddress(address);
  if (address.startsWith(embeddedScheme)) {
    const store = embedded(address.slice(embeddedScheme.length));
    return { store, close: () => undefined };
  }
  const { Redis } = await import("ioredis").catch((cause: unknown) => {
    const told = "a Redis store needs the package ioredis: npm install ioredis";
    throw new UnsupportedError(told, { cause });
  });
  const [first, ...rest] = serversOf(address).map((url) => new Redis(url));
  if (first === undefined) throw new InvalidOptionError("store", expected, address);
  const clients = [first, ...rest];
  // Told by the locks, which know what it means; without a listener ioredis writes to the console.
  for (const client of clients) client.on("error", () => undefined);
  const store = address.startsWith(redlockScheme) ? redlock(clients) : redis(first);
  return { store, close: () => void clients.map((client) => client.disconnect()) };
}

function serversOf(address: string): readonly string[] {
  if (!address.startsWith(redlockScheme)) return [address];
  return address.slice(redlockScheme.length).split(",");
}
