import type { HeldLease } from "../lease/held-lease.ts";
import type { Lines } from "./lines.ts";
import type { Instant } from "../ports.ts";
import type { Grant, OpenStore } from "../store.ts";
import { now } from "../time/validity.ts";

/** Least share of the validity that must be left for the next holder. */
const leastShare = 3 / 4;

/** A lock that a call of a manager hands over to the next, without a request to the store. */
export interface Offer {
  readonly grant: Grant;
  /** When it was handed over. Validity counts from here: what the previous holder had left. */
  readonly started: Instant;
  readonly validityMs: number;
}

interface HandOverContext {
  readonly lines: Lines;
  readonly store: OpenStore;
}

/**
 * Hands the lock of `lease` over to the next waiting call, under a greater fence that the store has
 * reserved. No request is sent. That call must want the same TTL and label, and must have waited
 * before the granted attempt was sent. Enough of the validity must be left.
 *
 * Returns what the old lease keeps for its users, its resources and its fence. Returns undefined if
 * the lock was not handed over.
 */
export function handOver(
  { lines, store }: HandOverContext,
  lease: HeldLease,
  grant: Grant,
): Grant | undefined {
  if (lines.isEmpty || store.handOver === undefined) return undefined;
  const [resource, ...others] = grant.resources;
  if (resource === undefined || others.length > 0) return undefined;
  const { clock } = lease.terms.host;
  const started = now(clock);
  const successor = lines.successorOf(resource, grant.owner, started.monotonicMs);
  if (successor?.wouldTake(lease.terms) !== true) return undefined;
  const validityMs = lease.leftMs(started);
  const isEnough = validityMs >= grant.validityMs * leastShare && validityMs <= grant.validityMs;
  if (!isEnough) return undefined;
  const { owner, fence, resources } = grant;
  const spent: Grant = { resources, owner, fence, validityMs: grant.validityMs };
  if (!store.handOver(grant)) return undefined;
  successor.take({ grant, started, validityMs });
  lines.passedOn(resource, successor, grant.fence);
  return spent;
}
