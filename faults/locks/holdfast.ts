import type { Redis } from "ioredis";
import {
  createLocks,
  isHoldfastError,
  LeaseLostError,
  type Lease,
  type Locks,
} from "../../src/index.ts";
import { redis, redlock } from "../../src/stores/redis/index.ts";
import { opened } from "../../tools/peers/scoped-lock.mjs";
import { nowMs } from "../monotonic.ts";
import type { Acquired, BenchLease, BenchLock, LockTerms } from "./bench-lock.ts";

/** Number of calls after which a manager is replaced by a new one on the same clients. */
const callsPerManager = 20;

/** Every other lock is acquired by `using`, and the rest by `acquire` and `release`. */
export function holdfast(
  clients: readonly Redis[],
  terms: LockTerms,
  admission: "strict" | "off",
): BenchLock {
  const closing = new Set<Promise<void>>();
  const open = (): ManagerInUse => new ManagerInUse(clients, terms, admission);
  let inUse = open();
  let calls = 0;
  return {
    async acquire(resource): Promise<Acquired> {
      calls += 1;
      if (calls % callsPerManager === 0) {
        const closed = inUse.retire();
        closing.add(closed);
        void closed.then(() => closing.delete(closed));
        inUse = open();
      }
      return await inUse.acquire(resource, calls % 2 === 0);
    },
    async close() {
      await Promise.all([...closing, inUse.retire()]);
    },
  };
}

/** A lock manager, with the number of its calls and leases that are still in use. */
class ManagerInUse {
  readonly #locks: Locks;
  /** Moment at which the last granted attempt for each resource began. */
  readonly #startsMs = new Map<string, number>();
  /** Latest end of each lease that is not over yet, as events named it, by its fence. */
  readonly #endsMs = new Map<bigint | undefined, number>();
  /** Number of calls and leases that are not over yet. */
  #open = 0;
  #retired: (() => void) | undefined;

  constructor(clients: readonly Redis[], terms: LockTerms, admission: "strict" | "off") {
    const { ttlMs, waitMs, retryMs } = terms;
    const [client] = clients;
    const options = { maxTtl: ttlMs, admission };
    const isAlone = clients.length === 1 && client !== undefined;
    this.#locks = createLocks(isAlone ? redis(client, options) : redlock(clients, options), {
      ttl: ttlMs,
      wait: waitMs,
      renew: true,
      retry: { minDelay: retryMs / 2, maxDelay: retryMs * 1.5 },
    });
    // Also for a lock that was handed over within the process, which began with its grant.
    this.#locks.on("attempt", ({ resources: [resource = ""], outcome, elapsedMs }) => {
      if (outcome === "granted") this.#startsMs.set(resource, nowMs() - elapsedMs);
    });
    this.#locks.on("renewed", ({ fence, remainingMs }) => {
      if (this.#endsMs.has(fence)) this.#endsMs.set(fence, nowMs() + remainingMs);
    });
  }

  async acquire(resource: string, byUsing: boolean): Promise<Acquired> {
    this.#open += 1;
    try {
      const taken = byUsing ? await this.#using(resource) : await this.#take(resource);
      const startedMs = this.#startsMs.get(resource);
      const { fence } = taken.lease;
      this.#endsMs.set(fence, nowMs() + taken.lease.remainingMs());
      const release = (): Promise<string> => {
        this.#endsMs.delete(fence);
        return taken.release().finally(() => this.#over());
      };
      const lease = {
        ...seen(taken.lease, startedMs),
        namedUntilMs: () => this.#endsMs.get(fence),
        releasedBy: taken.by,
        release,
      };
      return { kind: "granted", lease };
    } catch (error) {
      this.#over();
      if (!isHoldfastError(error)) throw error;
      return { kind: "refused", why: error.code };
    }
  }

  /** Closes it as soon as it is not in use any more. */
  async retire(): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#open === 0) resolve();
      else this.#retired = resolve;
    });
    await this.#locks.close();
  }

  #over(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#retired?.();
  }

  async #take(resource: string): Promise<Taken> {
    const lease = await this.#locks.acquire(resource);
    return {
      lease,
      by: "release",
      release: async () => {
        const outcome = await lease.release();
        return outcome.released ? "released" : outcome.reason;
      },
    };
  }

  async #using(resource: string): Promise<Taken> {
    const using = (work: (lease: Lease) => Promise<void>) => this.#locks.using(resource, work);
    const { given: lease, end } = await opened<Lease>(using);
    return { lease, by: "using", release: () => outcomeOf(end(), () => "released") };
  }
}

interface Taken {
  readonly lease: Lease;
  readonly by: "using" | "release";
  readonly release: () => Promise<string>;
}

function seen(
  lease: Lease,
  startedMs: number | undefined,
): Omit<BenchLease, "release" | "releasedBy" | "namedUntilMs"> {
  return {
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
    extend: () => outcomeOf(lease.extend(), () => "extended"),
    prove: () => outcomeOf(lease.prove(), (isProven) => (isProven ? "proven" : "taken")),
  };
}

/**
 * Returns one word: the description of the result, the reason of the loss, or the code of an
 * error.
 */
async function outcomeOf<Result>(
  settling: Promise<Result>,
  describe: (result: Result) => string,
): Promise<string> {
  try {
    return describe(await settling);
  } catch (error) {
    if (error instanceof LeaseLostError) return error.reason;
    if (!isHoldfastError(error)) throw error;
    return error.code;
  }
}
