import { ClosedError } from "../../../core/errors.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  ExtendOutcome,
  Grant,
  ProveOutcome,
  ReleaseOutcome,
} from "../../../core/store.ts";
import { lockKey } from "../lock-key.ts";
import { driftMs, nodeTimeoutMs } from "../options.ts";
import type { RaisingStore } from "../ordered-groups.ts";
import { checkTtl } from "../replicas-option.ts";
import { attempt } from "./attempt.ts";
import { RedisGrant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import { release } from "./release.ts";
import { touch } from "./touch.ts";

/** The steps of the protocol for resources that one script call can lock together. */
export class OneStep implements RaisingStore {
  readonly #quorum: Quorum;

  constructor(quorum: Quorum) {
    this.#quorum = quorum;
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    const { prefix, replicas } = this.#quorum.options;
    checkTtl(replicas, request.ttlMs, nodeTimeoutMs(this.#quorum.options, request.ttlMs));
    const keys = request.resources.map((resource) => lockKey(prefix, resource));
    const misfit = this.#quorum.misfit([]);
    if (misfit !== undefined) {
      return { kind: "failed", error: misfit, retryable: false, cleanup: undefined };
    }
    if (this.#quorum.options.admission === "strict") {
      await request.cancellation.orUntil(this.#quorum.prepare());
      if (request.cancellation.cancelled) {
        // Nothing was sent; the caller has its own reason, and this one only ends the attempt.
        const error = new ClosedError(request.resources);
        return { kind: "failed", error, retryable: false, cleanup: undefined };
      }
    }
    return await attempt(this.#quorum, request, keys);
  }

  async extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    const outcome = await touch(this.#quorum, asRedisGrant(grant), ttlMs, "extend");
    if (outcome.kind !== "done") return outcome;
    return { kind: "extended", validityMs: ttlMs - driftMs(this.#quorum.options, ttlMs) };
  }

  async prove(grant: Grant): Promise<ProveOutcome> {
    const outcome = await touch(this.#quorum, asRedisGrant(grant), 0, "prove");
    return outcome.kind === "done" ? { kind: "proven" } : outcome;
  }

  async release(grant: Grant): Promise<ReleaseOutcome> {
    const own = asRedisGrant(grant);
    own.life.isOver = true;
    return await release(this.#quorum, own);
  }

  async raise(grant: Grant, fence: bigint): Promise<Grant | undefined> {
    const raised = asRedisGrant(grant).withFence(Number(fence));
    const outcome = await touch(this.#quorum, raised, 0, "prove");
    return outcome.kind === "done" ? raised : undefined;
  }
}

function asRedisGrant(grant: Grant): RedisGrant {
  if (grant instanceof RedisGrant) return grant;
  throw new TypeError("this grant was made by another store");
}
