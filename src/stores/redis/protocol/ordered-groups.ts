import { ClosedError, QuorumError, type HoldfastError } from "../../../core/errors.ts";
import type { SteadyClock } from "../../../core/ports.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  ExtendOutcome,
  Grant,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
} from "../../../core/store.ts";
import { leftMs } from "../../../core/time/instant.ts";

/** A store that can raise the fence of a grant: update the stored fence to a greater one. */
export interface RaisingStore extends Pick<OpenStore, "attempt" | "extend" | "prove" | "release"> {
  /**
   * Raises the stored fence to `fence`. Returns the grant, or undefined if no quorum confirms the
   * fence.
   */
  raise(grant: Grant, fence: bigint): Promise<Grant | undefined>;
}

/** Resources that one store can lock in one step: those of one slot, or of one quorum. */
export interface Group {
  readonly store: RaisingStore;
  readonly resources: readonly string[];
}

export interface Part {
  readonly store: RaisingStore;
  readonly grant: Grant;
}

class GroupedGrant implements Grant {
  readonly resources: readonly string[];
  readonly owner: string;
  readonly fence: bigint | undefined;
  readonly validityMs: number;
  readonly parts: readonly Part[];

  constructor(request: AcquireRequest, parts: readonly Part[], fence: bigint | undefined) {
    this.resources = request.resources;
    this.owner = request.owner;
    this.fence = fence;
    this.parts = parts;
    this.validityMs = Math.min(...parts.map(({ grant }) => grant.validityMs));
  }
}

/**
 * Locks resources of several groups (of one slot, or of one quorum, each) one group after the
 * other, always in the same order. If one group refuses, releases the groups locked before. All
 * parts get the greatest of their fences, which is then stored in every group. For a moment, other
 * clients may see only some of the resources locked.
 */
export async function attemptInOrder(
  groups: readonly Group[],
  request: AcquireRequest,
  clock: SteadyClock,
): Promise<AttemptOutcome> {
  const parts: Part[] = [];
  try {
    const refused = await takeParts(groups, request, parts);
    if (refused !== undefined) {
      const cleanup = Promise.all([refused.cleanup, cleanUp(parts)]).then(() => undefined);
      return { ...refused, cleanup };
    }
    const grant = await underOneFence(request, parts);
    if (grant !== undefined && leftMs(clock, request.started, grant.validityMs) >= 1) {
      return { kind: "granted", grant };
    }
  } catch (error) {
    // A group threw an error instead of a refusal. Releases the groups that granted before.
    await cleanUp(parts);
    throw error;
  }
  const error = new QuorumError("acquire", request.resources, [], {
    quorum: groups.length,
    hint: "Each group granted, but not all of them in time under one fence",
  });
  return { kind: "failed", error, retryable: true, cleanup: cleanUp(parts) };
}

type Refused = Exclude<AttemptOutcome, { kind: "granted" }>;

/**
 * Sends an attempt for the resources of one group after the other, and adds each grant to `parts`.
 * Stops at the first refusal and returns it.
 */
async function takeParts(
  groups: readonly Group[],
  request: AcquireRequest,
  parts: Part[],
): Promise<Refused | undefined> {
  for (const { store, resources } of groups) {
    if (request.cancellation.cancelled) {
      // The caller does not report this error: it only ends the attempt.
      const error = new ClosedError(request.resources);
      return { kind: "failed", error, retryable: false, cleanup: undefined };
    }
    const outcome = await store.attempt({ ...request, resources });
    if (outcome.kind !== "granted") return outcome;
    parts.push({ store, grant: outcome.grant });
  }
  return undefined;
}

async function underOneFence(
  request: AcquireRequest,
  parts: readonly Part[],
): Promise<GroupedGrant | undefined> {
  const fence = greatest(parts);
  const raised = fence === undefined ? parts : await raiseAll(parts, fence);
  return raised && new GroupedGrant(request, raised, fence);
}

/** Returns the parts of a grant over several groups; undefined for a grant of one store. */
export function partsOf(grant: Grant): readonly Part[] | undefined {
  return grant instanceof GroupedGrant ? grant.parts : undefined;
}

/** Runs a step on every part of a grouped grant, or on `store` for a grant of one store. */
export const inOrder = {
  extend(store: RaisingStore, grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    const parts = partsOf(grant);
    return parts === undefined ? store.extend(grant, ttlMs) : extendParts(parts, ttlMs);
  },

  prove(store: RaisingStore, grant: Grant): Promise<ProveOutcome> {
    const parts = partsOf(grant);
    return parts === undefined ? store.prove(grant) : proveParts(parts);
  },

  release(store: RaisingStore, grant: Grant): Promise<ReleaseOutcome> {
    const parts = partsOf(grant);
    return parts === undefined ? store.release(grant) : releaseParts(parts);
  },
};

async function extendParts(parts: readonly Part[], ttlMs: number): Promise<ExtendOutcome> {
  const outcomes = await Promise.all(parts.map((part) => part.store.extend(part.grant, ttlMs)));
  const failed = worst(outcomes);
  if (failed !== undefined) return failed;
  const validities = outcomes.flatMap((each) => (each.kind === "extended" ? each.validityMs : []));
  return { kind: "extended", validityMs: Math.min(...validities) };
}

async function proveParts(parts: readonly Part[]): Promise<ProveOutcome> {
  const outcomes = await Promise.all(parts.map((part) => part.store.prove(part.grant)));
  return worst(outcomes) ?? { kind: "proven" };
}

async function releaseParts(parts: readonly Part[]): Promise<ReleaseOutcome> {
  const outcomes = await Promise.all(parts.map((part) => part.store.release(part.grant)));
  // A part that another owner has taken is more important than one that could not be reached.
  const missed = outcomes.filter((outcome) => !outcome.released);
  return missed.find(({ reason }) => reason === "taken") ?? missed[0] ?? { released: true };
}

type Bad = { readonly kind: "gone" } | { readonly kind: "failed"; readonly error: HoldfastError };

function worst(outcomes: readonly (ExtendOutcome | ProveOutcome)[]): Bad | undefined {
  const bad = outcomes.filter((outcome): outcome is Bad => {
    return outcome.kind === "gone" || outcome.kind === "failed";
  });
  return bad.find(({ kind }) => kind === "gone") ?? bad[0];
}

async function raiseAll(
  parts: readonly Part[],
  fence: bigint,
): Promise<readonly Part[] | undefined> {
  const raised = await Promise.all(
    parts.map(async ({ store, grant }) => {
      return { store, grant: grant.fence === fence ? grant : await store.raise(grant, fence) };
    }),
  );
  const whole = raised.filter((part): part is Part => part.grant !== undefined);
  return whole.length === parts.length ? whole : undefined;
}

/** Releases all parts. Never rejects: one failed release must not stop the others. */
async function cleanUp(parts: readonly Part[]): Promise<void> {
  await Promise.allSettled(parts.map(async ({ store, grant }) => await store.release(grant)));
}

function greatest(parts: readonly Part[]): bigint | undefined {
  let found: bigint | undefined;
  for (const { grant } of parts) {
    if (grant.fence !== undefined && (found === undefined || grant.fence > found)) {
      found = grant.fence;
    }
  }
  return found;
}
