import { createRequire } from "node:module";
import type { Redis } from "ioredis";

/** A lock of another library: `leave` releases what `enter` acquired. */
export interface PeerLock {
  enter(): Promise<unknown>;
  leave(held: unknown): Promise<unknown>;
}

/** A published lock library that may use the same keys as Holdfast. */
export interface Peer {
  readonly name: string;
  readonly nodes: 1 | 3;
  /** Text in front of the name of a resource in its key. */
  readonly prefix: string;
  lockOf(clients: readonly Redis[], resource: string): PeerLock;
}

/** Pause of each library between two attempts. */
const pollMs = 10;
const ttlMs = 20_000;
/** Far more than a test needs: the test fails if a client gives up. */
const tries = 6_000;

interface Redlock5 {
  acquire(resources: string[], ttl: number): Promise<{ release(): Promise<unknown> }>;
}

interface Redlock4 {
  lock(resource: string, ttl: number): PromiseLike<{ unlock(): PromiseLike<unknown> }>;
}

interface Mutex {
  acquire(): Promise<void>;
  release(): Promise<void>;
}

type Make<Made, First> = new (first: First, ...rest: readonly unknown[]) => Made;

// Loaded without types, because version 4 of redlock has none.
const load = createRequire(import.meta.url);

function redlock5(clients: readonly Redis[], resource: string): PeerLock {
  const { default: Redlock } = load("redlock") as { default: Make<Redlock5, readonly Redis[]> };
  const redlock = new Redlock(clients, { retryCount: tries, retryDelay: pollMs, retryJitter: 3 });
  return {
    enter: () => redlock.acquire([resource], ttlMs),
    leave: (held) => (held as { release(): Promise<unknown> }).release(),
  };
}

function redlock4(clients: readonly Redis[], resource: string): PeerLock {
  const Redlock = load("redlock4") as Make<Redlock4, readonly Redis[]>;
  const redlock = new Redlock(clients, { retryCount: tries, retryDelay: pollMs, retryJitter: 3 });
  return {
    enter: async () => await redlock.lock(resource, ttlMs),
    leave: async (held) => await (held as { unlock(): PromiseLike<unknown> }).unlock(),
  };
}

const mutexOptions = {
  lockTimeout: ttlMs,
  acquireTimeout: tries * pollMs,
  retryInterval: pollMs,
  refreshInterval: 0,
};

function mutex(clients: readonly Redis[], resource: string): PeerLock {
  const [client] = clients;
  if (client === undefined) throw new Error("a Mutex needs one client");
  const { Mutex: Made } = load("redis-semaphore") as { Mutex: Make<Mutex, Redis> };
  return lockOfMutex(new Made(client, resource, mutexOptions));
}

function redlockMutex(clients: readonly Redis[], resource: string): PeerLock {
  const { RedlockMutex } = load("redis-semaphore") as {
    RedlockMutex: Make<Mutex, readonly Redis[]>;
  };
  return lockOfMutex(new RedlockMutex(clients, resource, mutexOptions));
}

function lockOfMutex(made: Mutex): PeerLock {
  return { enter: () => made.acquire(), leave: () => made.release() };
}

export const peers: readonly Peer[] = [
  { name: "redlock 5", nodes: 1, prefix: "", lockOf: redlock5 },
  { name: "redlock 5", nodes: 3, prefix: "", lockOf: redlock5 },
  { name: "redlock 4", nodes: 1, prefix: "", lockOf: redlock4 },
  { name: "redlock 4", nodes: 3, prefix: "", lockOf: redlock4 },
  { name: "Mutex of redis-semaphore", nodes: 1, prefix: "mutex:", lockOf: mutex },
  { name: "RedlockMutex of redis-semaphore", nodes: 3, prefix: "mutex:", lockOf: redlockMutex },
];
