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
  const waits = new Map<bigint | undefined, number>();
  locks.on("acquired", ({ fence, waitedMs }) => waits.set(fence, waitedMs));
  return {
    async acquire(resource): Promise<Acquired> {
      try {
        const lease = await locks.acquire(resource);
        const waitedMs = waits.get(lease.fence);
        waits.delete(lease.fence);
        return {
          kind: "granted",
          lease: {
            fenced: lease,
            waitedMs,
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
