import type { Redis } from "ioredis";
import { redlockRetries } from "../../tools/peers/peer-locks.mjs";
import { opened } from "../../tools/peers/scoped-lock.mjs";
import type { Acquired, BenchLock, LockTerms } from "./bench-lock.ts";
import { signalLease } from "./signal-lease.ts";

/** The part of redlock 5.0.0-beta.2 that is used here. */
interface Lock {
  readonly value: string;
  readonly expiration: number;
}

interface Redlock {
  acquire(resources: string[], ttlMs: number, settings?: object): Promise<Lock>;
  extend(lock: Lock, ttlMs: number, settings?: object): Promise<Lock>;
  using(
    resources: string[],
    ttlMs: number,
    routine: (signal: AbortSignal) => Promise<void>,
  ): Promise<void>;
}

export type RedlockClass = new (clients: readonly Redis[], settings: object) => Redlock;

/**
 * `using` renews and gives a signal, but not the lock. So the expiration is read when the library
 * creates the lock.
 */
export function redlock5(
  Redlock: RedlockClass,
  clients: readonly Redis[],
  { ttlMs, waitMs, retryMs }: LockTerms,
): BenchLock {
  const retries = redlockRetries({ waitMs, pollMs: retryMs });
  return {
    async acquire(resource): Promise<Acquired> {
      // One instance for each lock, so that the locks it creates belong to this lease.
      const redlock = new Redlock(clients, retries);
      let expiration = 0;
      const noting =
        <Args extends readonly unknown[]>(make: (...args: Args) => Promise<Lock>) =>
        async (...args: Args): Promise<Lock> => {
          const lock = await make(...args);
          ({ expiration } = lock);
          return lock;
        };
      redlock.acquire = noting(redlock.acquire.bind(redlock));
      redlock.extend = noting(redlock.extend.bind(redlock));
      try {
        const { given: signal, end } = await opened<AbortSignal>((work) =>
          redlock.using([resource], ttlMs, work),
        );
        return { kind: "granted", lease: signalLease(signal, end, () => expiration) };
      } catch (error) {
        return { kind: "refused", why: error instanceof Error ? error.name : String(error) };
      }
    },
    close: () => Promise.resolve(),
  };
}
