import type { HeldLease } from "./held-lease.ts";
import type { Lines } from "./lines.ts";
import type { Instant } from "./ports.ts";
import type { Grant, OpenStore } from "./store.ts";
import { now } from "./validity.ts";

/** Less than this part of its time is not passed on: the next holder counts on all of it. */
const leastShare = 3 / 4;

/** A lock on its way from one call of a manager to the next, without a word to the store. */
export interface Offer {
  readonly grant: Grant;
  /** When it was passed on; its validity counts from here, and is what the last holder left. */
  readonly started: Instant;
  readonly validityMs: number;
}

interface HandOverContext {
  readonly lines: Lines;
  readonly store: OpenStore;
}

/**
 * Passes what `lease` holds on to the call that waits next, if that call asks for the same, waited
 * before the store was asked for it, and all is well with it: the store gives it a new, greater
 * fence of those it has reserved, and no request is sent. Returns what is left to the old lease,
 * which is over then: its name and its fence, and no way to the store.
 */
export function handOver(
  { lines, store }: HandOverContext,
  lease: HeldLease,
  grant: Grant,
): Grant | undefined {
  if (lines.isEmpty || store.passOn === undefined) return undefined;
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
  if (!store.passOn(grant)) return undefined;
  successor.take({ grant, started, validityMs });
  lines.passedOn(resource, successor, grant.fence);
  return spent;
}
