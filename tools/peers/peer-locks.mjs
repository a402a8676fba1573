// @ts-check
/** Lock libraries of npm, all of them used in the same way. Each is passed in by its user. */

import { opened } from "./scoped-lock.mjs";

/**
 * @typedef {object} Terms
 * @property {number} ttlMs
 * @property {number} waitMs limit for the wait of an acquire; 0 is one attempt
 * @property {number | undefined} pollMs pause between two attempts; by default the library's own
 * @property {number} [renewEveryMs] time between two renewals of a kept lock
 */
/**
 * @typedef {object} PeerLocks
 * @property {(resource: string) => Promise<unknown>} acquire rejects if the lock is not granted
 * @property {(held: unknown) => Promise<unknown>} release rejects if nothing was released
 * @property {(resource: string) => Promise<unknown>} keep acquires and renews
 * @property {(kept: unknown) => Promise<unknown>} drop ends what `keep` has returned
 */
/** @typedef {readonly object[]} Clients of ioredis, one for each server */
/**
 * @template Made
 * @typedef {new (first: any, ...rest: any[]) => Made} Class
 */
/**
 * @typedef {object} RedlockErrors
 * @property {(event: string, listener: () => void) => unknown} on
 */
/**
 * @typedef {{ unlock(): PromiseLike<unknown>,
 *   extend(ttlMs: number): PromiseLike<unknown> }} Lock4
 */
/**
 * @typedef {RedlockErrors
 *   & { lock(resource: string, ttlMs: number): PromiseLike<Lock4> }} Redlock4
 */
/** @typedef {{ release(): Promise<unknown> }} Lock5 */
/**
 * @typedef {RedlockErrors & { acquire(resources: string[], ttlMs: number): Promise<Lock5>,
 *   using(resources: string[], ttlMs: number,
 *     work: () => Promise<void>): Promise<unknown> }} Redlock5
 */
/** @typedef {{ acquire(): Promise<void>, release(): Promise<void> }} Mutex */
/**
 * @typedef {{ acquire(): Promise<object>, release(handle: object): Promise<boolean>,
 *   using(work: () => Promise<void>): Promise<unknown> }} UniversalLock
 */

/** Options of redlock 4 and 5. @param {Pick<Terms, "waitMs" | "pollMs">} terms */
export function redlockRetries({ waitMs, pollMs }) {
  if (waitMs === 0) return { retryCount: 0 };
  if (pollMs === undefined) return { retryCount: Math.ceil(waitMs / 200) };
  // Both versions subtract and add the jitter, which gives the same spread as raw polling.
  const retryCount = Math.ceil(waitMs / pollMs);
  return { retryCount, retryDelay: pollMs, retryJitter: pollMs / 2 };
}

/**
 * @param {Class<Redlock4>} Redlock
 * @param {Clients} clients
 * @param {Terms} terms
 * @returns {PeerLocks}
 */
export function redlock4(Redlock, clients, terms) {
  const redlock = new Redlock(clients, redlockRetries(terms));
  redlock.on("clientError", () => undefined);
  const { ttlMs, renewEveryMs } = terms;
  const acquire = async (/** @type {string} */ resource) => await redlock.lock(resource, ttlMs);
  return {
    acquire,
    release: async (held) => await /** @type {Lock4} */ (held).unlock(),
    // The library has no renewal.
    ...renewing(acquire, renewEveryMs, {
      renew: async (lock) => await lock.extend(ttlMs),
      release: async (lock) => await lock.unlock(),
    }),
  };
}

/**
 * @param {Class<Redlock5>} Redlock
 * @param {Clients} clients
 * @param {Terms} terms
 * @returns {PeerLocks}
 */
export function redlock5(Redlock, clients, terms) {
  const { ttlMs, renewEveryMs } = terms;
  // The library counts down from an expiration without the drift.
  const renewal =
    renewEveryMs === undefined
      ? {}
      : { automaticExtensionThreshold: Math.max(0, ttlMs - renewEveryMs) };
  const redlock = new Redlock(clients, { ...redlockRetries(terms), ...renewal });
  redlock.on("error", () => undefined);
  return {
    acquire: (resource) => redlock.acquire([resource], ttlMs),
    release: (held) => /** @type {Lock5} */ (held).release(),
    keep: (resource) => opened((work) => redlock.using([resource], ttlMs, () => work(undefined))),
    drop: endScope,
  };
}

/**
 * @param {{ Mutex: Class<Mutex>, RedlockMutex: Class<Mutex> }} library
 * @param {Clients} clients
 * @param {Terms} terms
 * @returns {PeerLocks}
 */
export function redisSemaphore({ Mutex, RedlockMutex }, clients, terms) {
  const { ttlMs, waitMs, pollMs, renewEveryMs } = terms;
  const options = {
    lockTimeout: ttlMs,
    // 0 is not allowed; with one attempt the timeout does not matter.
    acquireTimeout: waitMs === 0 ? ttlMs : waitMs,
    ...(waitMs === 0 ? { acquireAttemptsLimit: 1 } : {}),
    ...(pollMs === undefined ? {} : { retryInterval: pollMs }),
    // By default every mutex renews itself, and no other library does.
    refreshInterval: 0,
  };
  const acquired = async (/** @type {string} */ key, /** @type {object} */ given) => {
    const mutex =
      clients.length === 1
        ? new Mutex(clients[0], key, given)
        : new RedlockMutex(clients, key, given);
    await mutex.acquire();
    return mutex;
  };
  const release = (/** @type {unknown} */ held) => /** @type {Mutex} */ (held).release();
  return {
    acquire: (resource) => acquired(resource, options),
    release,
    keep: (resource) => acquired(resource, { ...options, refreshInterval: renewEveryMs }),
    drop: release,
  };
}

/**
 * @param {{ IoredisAdapter: Class<object>, createLock(config: object): UniversalLock,
 *   createRedlock(config: object): UniversalLock }} library
 * @param {Clients} clients
 * @param {Terms} terms
 * @returns {PeerLocks}
 */
export function redlockUniversal(library, clients, { ttlMs, waitMs, pollMs }) {
  const adapters = clients.map((client) => new library.IoredisAdapter(client));
  const retryAttempts = Math.ceil(waitMs / (pollMs ?? 100));
  const retry = pollMs === undefined || waitMs === 0 ? {} : { retryDelay: pollMs };
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const shared = { ttl: ttlMs, retryAttempts, ...retry, logger };
  const [adapter] = adapters;
  const lockOf = (/** @type {string} */ key) =>
    adapters.length === 1
      ? library.createLock({ ...shared, adapter, key })
      : library.createRedlock({ ...shared, adapters, key });
  return {
    async acquire(resource) {
      const lock = lockOf(resource);
      return { lock, handle: await lock.acquire() };
    },
    async release(held) {
      const { lock, handle } = /** @type {{ lock: UniversalLock, handle: object }} */ (held);
      if (!(await lock.release(handle))) throw new Error("not released");
    },
    // It renews when a fifth of the TTL is left, which cannot be configured.
    keep: (resource) => opened((work) => lockOf(resource).using(() => work(undefined))),
    drop: endScope,
  };
}

/**
 * `keep` and `drop` of a library without renewal: renews by a timer.
 *
 * @template Lock
 * @param {(resource: string) => Promise<Lock>} acquire
 * @param {number | undefined} everyMs
 * @param {{ renew: (lock: Lock) => Promise<unknown>,
 *   release: (lock: Lock) => Promise<unknown> }} calls
 * @returns {Pick<PeerLocks, "keep" | "drop">}
 */
export function renewing(acquire, everyMs, { renew, release }) {
  return {
    async keep(resource) {
      const lock = await acquire(resource);
      const timer = setInterval(() => void renew(lock).catch(() => undefined), everyMs);
      return { lock, timer };
    },
    drop(kept) {
      const { lock, timer } = /** @type {{ lock: Lock, timer: NodeJS.Timeout }} */ (kept);
      clearInterval(timer);
      return release(lock);
    },
  };
}

/** @param {unknown} kept @returns {Promise<unknown>} */
function endScope(kept) {
  return /** @type {{ end(): Promise<unknown> }} */ (kept).end();
}
