import { ClosedError } from "../../../core/errors.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  ExtendOutcome,
  Grant,
  ProveOutcome,
  ReleaseOutcome,
} from "../../../core/store.ts";
import type { Place } from "../commands/operation.ts";
import { lockKeys } from "../commands/keys.ts";
import { checkTtl, nodeTimeoutMs } from "./store-settings.ts";
import type { RaisingStore } from "./ordered-groups.ts";
import { attempt } from "./attempt.ts";
import { RedisGrant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import { release } from "./release.ts";
import { touch } from "./touch.ts";

/** Runs the protocol on one quorum, for resources that one script call can lock together. */
export class Protocol implements RaisingStore {
  readonly #quorum: Quorum;

  constructor(quorum: Quorum) {
    this.#quorum = quorum;
  }

  attempt(request: AcquireRequest, place?: Place): Promise<AttemptOutcome> {
    const { prefix, replicas } = this.#quorum.options;
    if (replicas !== undefined) {
      checkTtl(replicas, request.ttlMs, nodeTimeoutMs(this.#quorum.options, request.ttlMs));
    }
    const keys = lockKeys(prefix, request.resources);
    const { duplicates, admissions } = this.#quorum;
    if (duplicates.setupError !== undefined) return this.#recheckAndAttempt(request, keys, place);
    if (admissions.isPrepared) return attempt(this.#quorum, request, keys, place);
    return this.#prepareAndAttempt(request, keys, place);
  }

  /**
   * Checks first if two nodes still have the same server: an address may have been wrong for a
   * moment.
   */
  async #recheckAndAttempt(
    request: AcquireRequest,
    keys: readonly string[],
    place: Place | undefined,
  ): Promise<AttemptOutcome> {
    await request.cancellation.orUntil(this.#quorum.duplicates.recheck());
    const error = this.#quorum.duplicates.setupError;
    if (error === undefined) return await this.#prepareAndAttempt(request, keys, place);
    return { kind: "failed", error, retryable: false, cleanup: undefined };
  }

  async #prepareAndAttempt(
    request: AcquireRequest,
    keys: readonly string[],
    place: Place | undefined,
  ): Promise<AttemptOutcome> {
    await request.cancellation.orUntil(this.#quorum.admissions.prepare());
    if (request.cancellation.cancelled) {
      // No request was sent. This error only ends the attempt: the caller reports its own reason.
      const error = new ClosedError(request.resources);
      return { kind: "failed", error, retryable: false, cleanup: undefined };
    }
    return await attempt(this.#quorum, request, keys, place);
  }

  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    return touch(this.#quorum, asRedisGrant(grant), ttlMs, "extend").then((outcome) => {
      if (outcome.kind !== "done") return outcome;
      return { kind: "extended", validityMs: this.#quorum.fields.of(ttlMs).validityMs };
    });
  }

  async prove(grant: Grant): Promise<ProveOutcome> {
    const own = asRedisGrant(grant);
    const outcome = await touch(this.#quorum, own, own.proofTtlMs, "prove");
    return outcome.kind === "done" ? { kind: "proven" } : outcome;
  }

  release(grant: Grant): Promise<ReleaseOutcome> {
    const own = asRedisGrant(grant);
    const { places, skipped, gaps } = this.#quorum;
    gaps?.begin(own.resources);
    return release(this.#quorum, own, places.get(own), skipped.get(own));
  }

  async raise(grant: Grant, fence: bigint): Promise<Grant | undefined> {
    const own = asRedisGrant(grant);
    const outcome = await touch(this.#quorum, own, 0, "prove", Number(fence));
    if (outcome.kind !== "done") return undefined;
    own.fenceNumber = Number(fence);
    return own;
  }
}

function asRedisGrant(grant: Grant): RedisGrant {
  if (grant instanceof RedisGrant) return grant;
  throw new TypeError("this grant was made by another store");
}
