import { createRequire } from "node:module";
import type { Redis } from "ioredis";
import { type PeerLocks, redisSemaphore } from "../../tools/peers/peer-locks.mjs";
import { redlock4, redlock5 } from "../../tools/peers/peer-locks.mjs";

/** A published lock library that may use the same keys as Holdfast. */
export interface Peer {
  readonly name: string;
  readonly nodes: 1 | 3;
  /** Text in front of the name of a resource in its key. */
  readonly prefix: string;
  readonly open: (clients: readonly Redis[]) => PeerLocks;
}

/** The wait is far longer than a test needs: the test fails if a client gives up. */
const terms = { ttlMs: 20_000, waitMs: 60_000, pollMs: 10 };

// Loaded without types, because version 4 of redlock has none.
const load = createRequire(import.meta.url);

const onRedlock5 = (clients: readonly Redis[]): PeerLocks => {
  const { default: Redlock } = load("redlock") as { default: Parameters<typeof redlock5>[0] };
  return redlock5(Redlock, clients, terms);
};

const onRedlock4 = (clients: readonly Redis[]): PeerLocks =>
  redlock4(load("redlock4") as Parameters<typeof redlock4>[0], clients, terms);

const onSemaphore = (clients: readonly Redis[]): PeerLocks => {
  const library = load("redis-semaphore") as Parameters<typeof redisSemaphore>[0];
  return redisSemaphore(library, clients, terms);
};

export const peers: readonly Peer[] = [
  { name: "redlock 5", nodes: 1, prefix: "", open: onRedlock5 },
  { name: "redlock 5", nodes: 3, prefix: "", open: onRedlock5 },
  { name: "redlock 4", nodes: 1, prefix: "", open: onRedlock4 },
  { name: "redlock 4", nodes: 3, prefix: "", open: onRedlock4 },
  { name: "Mutex of redis-semaphore", nodes: 1, prefix: "mutex:", open: onSemaphore },
  { name: "RedlockMutex of redis-semaphore", nodes: 3, prefix: "mutex:", open: onSemaphore },
];
