import type { Redis } from "ioredis";
import { nowMs } from "../monotonic.ts";
import type { Acquired, BenchLock, LockTerms } from "./bench-lock.ts";
import { opened } from "./scoped.ts";

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
 * creates the lock. A lease is trusted while the signal is not aborted and the expiration is
 * ahead.
 */
export function redlock5(
  Redlock: RedlockClass,
  clients: readonly Redis[],
  { ttlMs, waitMs, retryMs }: LockTerms,
): BenchLock {
  const retryJitter = retryMs / 2;
  const retryCount = Math.ceil(waitMs / retryMs);
  return {
    async acquire(resource): Promise<Acquired> {
      // One instance for each lock, so that the locks it creates belong to this lease.
      const redlock = new Redlock(clients, { retryCount, retryDelay: retryMs, retryJitter });
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
        return {
          kind: "granted",
          lease: {
            fenced: undefined,
            startedMs: undefined,
            trusted: () => !signal.aborted && expiration > Date.now(),
            untilMs: () => nowMs() + expiration - Date.now(),
            onLost: (listener) => signal.addEventListener("abort", () => listener("signal")),
            release: () =>
              end().then(
                () => "released",
                (error: unknown) => String(error),
              ),
          },
        };
      } catch (error) {
        return { kind: "refused", why: error instanceof Error ? error.name : String(error) };
      }
    },
    close: () => Promise.resolve(),
  };
}
