import { HoldfastError, StoreError } from "../../../core/errors.ts";
import type { ExtendOutcome, Grant, OnExtended } from "../../../core/store.ts";
import { RedisGrant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import { renewTogether } from "./renewal.ts";

/**
 * Limit of grants per call. A longer script delays the commands of every other client of the
 * server.
 */
const togetherMax = 64;

export interface ManyToRenew {
  readonly grants: readonly Grant[];
  readonly ttlMs: number;
  /** Extends one grant that cannot be combined with others. */
  readonly alone: (grant: Grant) => Promise<ExtendOutcome>;
}

/**
 * perf (renew): extends many grants with one call per node. A grant of several keys is extended
 * alone, and so is every grant if one call cannot carry several locks.
 */
export function renewMany(
  quorum: Quorum,
  { grants, ttlMs, alone }: ManyToRenew,
  onOutcome: OnExtended,
): void {
  const { calls } = quorum;
  let keys: string[] = [];
  let own: RedisGrant[] = [];
  let places: number[] = [];
  const send = (): void => {
    const at = places;
    if (own.length > 0) {
      const request = { call: calls.renew(keys, own, ttlMs), grants: own, ttlMs };
      renewTogether(quorum, request, (index, outcome, received) => {
        onOutcome(at[index] ?? -1, outcome, received);
      });
    }
    [keys, own, places] = [[], [], []];
  };
  for (const [place, grant] of grants.entries()) {
    const lone = grant instanceof RedisGrant && calls.mode.hasLists ? grant : undefined;
    const key = lone?.onlyKey;
    if (lone === undefined || key === undefined) {
      alone(grant).then(
        (outcome) => onOutcome(place, outcome, quorum.clock.now()),
        (error: unknown) => onOutcome(place, failedOf(error), quorum.clock.now()),
      );
      continue;
    }
    keys.push(key);
    own.push(lone);
    places.push(place);
    if (own.length === togetherMax) send();
  }
  send();
}

function failedOf(cause: unknown): ExtendOutcome {
  const isOurs = cause instanceof HoldfastError;
  return { kind: "failed", error: isOurs ? cause : new StoreError(String(cause), { cause }) };
}
