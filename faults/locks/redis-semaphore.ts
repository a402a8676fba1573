import type { Redis } from "ioredis";
import type { Acquired, BenchLock, LockTerms } from "./bench-lock.ts";

/** The part of redis-semaphore 5 that is used here. */
interface Mutex {
  readonly isAcquired: boolean;
  tryAcquire(): Promise<boolean>;
  release(): Promise<void>;
}

export type RedlockMutexClass = new (
  clients: readonly Redis[],
  key: string,
  options: object,
) => Mutex;

/** A lease is trusted while `isAcquired` is true, because the library reports nothing else. */
export function redisSemaphore(
  RedlockMutex: RedlockMutexClass,
  clients: readonly Redis[],
  { ttlMs, waitMs, retryMs }: LockTerms,
): BenchLock {
  return {
    async acquire(resource): Promise<Acquired> {
      const listeners: ((reason: string) => void)[] = [];
      const mutex = new RedlockMutex(clients, resource, {
        lockTimeout: ttlMs,
        acquireTimeout: waitMs,
        retryInterval: retryMs,
        onLockLost: () => {
          for (const listener of listeners) listener("onLockLost");
        },
      });
      if (!(await mutex.tryAcquire())) return { kind: "refused", why: "timeout" };
      return {
        kind: "granted",
        lease: {
          fenced: undefined,
          startedMs: undefined,
          trusted: () => mutex.isAcquired,
          untilMs: () => undefined,
          onLost: (listener) => listeners.push(listener),
          release: () => mutex.release().then(() => "released"),
        },
      };
    },
    close: () => Promise.resolve(),
  };
}
