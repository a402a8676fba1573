import { InvalidOptionError, UnsupportedError } from "../../core/errors.ts";
import type { Store } from "../../core/store.ts";
import { embedded } from "../../stores/embedded/index.ts";
import { redis, redlock } from "../../stores/redis/index.ts";

/** Store of the demo and how to close it. */
export interface DemoStore {
  readonly store: Store;
  readonly close: () => void;
}

/**
 * True for the embedded store, the only one that detects a dead process. With other stores the
 * lease must run out.
 */
export function noticesDeadHolders(address: string): boolean {
  return address.startsWith(embeddedScheme);
}

const embeddedScheme = "embedded:";
const redlockScheme = "redlock:";
const expected = "embedded:<directory>, redis://<host> or redlock:redis://<host>,redis://<host>,…";

/** Throws InvalidOptionError if the text is not a store address. */
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
  // Errors are reported by the locks. Without a listener ioredis prints them to the console.
  for (const client of clients) client.on("error", () => undefined);
  const store = address.startsWith(redlockScheme) ? redlock(clients) : redis(first);
  return { store, close: () => void clients.map((client) => client.disconnect()) };
}

function serversOf(address: string): readonly string[] {
  if (!address.startsWith(redlockScheme)) return [address];
  return address.slice(redlockScheme.length).split(",");
}
