import type { Redis } from "ioredis";
import { createLocks, isHoldfastError, LeaseLostError } from "../../src/index.ts";
import { redlock } from "../../src/stores/redis/index.ts";
import { nowMs } from "../monotonic.ts";
import type { Acquired, BenchLock, LockTerms } from "./bench-lock.ts";

export function holdfast(
  clients: readonly Redis[],
  terms: LockTerms,
  admission: "strict" | "off",
): BenchLock {
  const { ttlMs, waitMs, retryMs } = terms;
  const locks = createLocks(redlock(clients, { maxTtl: ttlMs, admission }), {
    ttl: ttlMs,
    wait: waitMs,
    renew: true,
    retry: { minDelay: retryMs / 2, maxDelay: retryMs * 1.5 },
  });
  // Of a lock that is passed on within the process, too: it began with its grant.
  const startsMs = new Map<string, number>();
  locks.on("attempt", ({ resources: [resource = ""], outcome, elapsedMs }) => {
    if (outcome === "granted") startsMs.set(resource, nowMs() - elapsedMs);
  });
  return {
    async acquire(resource): Promise<Acquired> {
      try {
        const lease = await locks.acquire(resource);
        const startedMs = startsMs.get(resource);
        return {
          kind: "granted",
          lease: {
            fenced: lease,
            startedMs,
            trusted: () => lease.state === "held" || lease.state === "doubtful",
            untilMs: () => nowMs() + lease.remainingMs(),
            onLost(listener) {
              lease.signal.addEventListener("abort", () => {
                const reason: unknown = lease.signal.reason;
                listener(reason instanceof LeaseLostError ? reason.reason : String(reason));
              });
            },
            async release() {
              const outcome = await lease.release();
              return outcome.released ? "released" : outcome.reason;
            },
          },
        };
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        return { kind: "refused", why: error.code };
      }
    },
    close: () => locks.close(),
  };
}
