import type { Options } from "../options.ts";
import { retryMs } from "../world.ts";

/** Returns the settings of each library, for the report. */
export function settingsOf({ lock, ttlMs, waitMs }: Options): string {
  const attempts = Math.ceil(waitMs / retryMs);
  switch (lock) {
    case "holdfast":
    case "holdfast-without-admission":
      return (
        `ttl and maxTtl ${ttlMs} ms, wait ${waitMs} ms, renew, retry ${retryMs / 2} to ` +
        `${retryMs * 1.5} ms, admission ${lock === "holdfast" ? "strict" : "off"}, the rest by ` +
        "default; every other lock by `using`, every other one by `acquire` and `release`"
      );
    case "redlock5":
      return (
        `\`using\` with duration ${ttlMs} ms, retryCount ${attempts}, retryDelay ${retryMs} ms, ` +
        `retryJitter ${retryMs / 2} ms, the rest by default`
      );
    case "redis-semaphore":
      return (
        `\`RedlockMutex\` with lockTimeout ${ttlMs} ms, acquireTimeout ${waitMs} ms, ` +
        `retryInterval ${retryMs} ms, onLockLost set, the rest by default`
      );
    case "redlock-universal":
      return (
        `\`createRedlock(…).using\` with ttl ${ttlMs} ms, retryAttempts ${attempts}, retryDelay ` +
        `${retryMs} ms, adapter timeout 500 ms, the rest by default`
      );
    default:
      return lock satisfies never;
  }
}
