import type { Redis } from "ioredis";
import { opened } from "../../tools/peers/scoped-lock.mjs";
import type { Acquired, BenchLock, LockTerms } from "./bench-lock.ts";
import { signalLease } from "./signal-lease.ts";

/** The part of redlock-universal 0.8 that is used here. */
interface Handle {
  readonly acquiredAt: number;
  readonly ttl: number;
}

interface UniversalLock {
  acquire(): Promise<Handle>;
  extend(handle: Handle, ttlMs: number): Promise<boolean>;
  using(routine: (signal: AbortSignal) => Promise<void>): Promise<void>;
}

export interface UniversalModule {
  readonly IoredisAdapter: new (client: Redis, options?: object) => object;
  createRedlock(config: object): UniversalLock;
}

/**
 * `using` renews and gives a signal, but not the handle. So the validity is read when the library
 * creates and extends the handle, and counted as the library counts it: from the end of the call.
 */
export function redlockUniversal(
  module: UniversalModule,
  clients: readonly Redis[],
  { ttlMs, waitMs, retryMs }: LockTerms,
): BenchLock {
  // The library's default timeout for a command is 5 s, longer than the TTL.
  const timeout = 500;
  const adapters = clients.map((client) => new module.IoredisAdapter(client, { timeout }));
  const retryAttempts = Math.ceil(waitMs / retryMs);
  return {
    async acquire(resource): Promise<Acquired> {
      const lock = module.createRedlock({
        adapters,
        key: resource,
        ttl: ttlMs,
        retryAttempts,
        retryDelay: retryMs,
      });
      let expiresAt = 0;
      const acquire = lock.acquire.bind(lock);
      lock.acquire = async () => {
        const handle = await acquire();
        expiresAt = handle.acquiredAt + handle.ttl;
        return handle;
      };
      const extend = lock.extend.bind(lock);
      lock.extend = async (handle, ttl) => {
        const extended = await extend(handle, ttl);
        if (extended) expiresAt = Date.now() + ttl;
        return extended;
      };
      try {
        const { given: signal, end } = await opened<AbortSignal>((work) => lock.using(work));
        return { kind: "granted", lease: signalLease(signal, end, () => expiresAt) };
      } catch (error) {
        return { kind: "refused", why: error instanceof Error ? error.name : String(error) };
      }
    },
    close: () => Promise.resolve(),
  };
}
