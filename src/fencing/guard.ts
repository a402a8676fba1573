import { createHash } from "node:crypto";
import { FenceRejectedError, InvalidOptionError, StoreError } from "../core/errors.ts";
import { resourcesOf } from "../core/resources.ts";

/**
 * Code shared by all guards. Every guard applies one rule: accept a write if its fence >= the last
 * stored fence, and store the fence together with the write.
 *
 * The rule is `>=` because one lease writes more than once. Check and write must be one atomic
 * step: between two separate steps a later holder could write.
 */

/**
 * Input of a guard: a lease, or any other object with a fence and the resources it is valid for.
 */
export interface Fenced {
  /**
   * Fence of the lease. Reading it throws UnsupportedError if the store of the lease has no fences.
   */
  readonly fence: bigint;
  readonly resources: readonly string[];
}

export type GuardKind = "postgres" | "mysql" | "redis" | "http" | "memory";

/** Report that a guard refused a write. The lease of that write receives the report. */
export interface FenceRejection {
  readonly resource: string;
  readonly fence: bigint;
  /** Stored fence, which is greater; undefined if the guard did not receive it. */
  readonly seen: bigint | undefined;
  readonly guard: GuardKind;
}

/** Greatest fence that fits a signed 64-bit BIGINT. Guards compare exactly up to this value. */
export const fenceMax: bigint = 9_223_372_036_854_775_807n;

const rejectionMethod = Symbol.for("holdfast.lease.fenceRejected");

/**
 * Reads and checks the fence. Every guard calls this before it sends anything, so a missing or
 * invalid fence fails without a write.
 */
export function fenceOf(fenced: Fenced | bigint): bigint {
  const fence: unknown = isObject(fenced) ? fenced["fence"] : fenced;
  if (typeof fence !== "bigint" || fence <= 0n || fence > fenceMax) {
    throw new InvalidOptionError("fence", `a bigint from 1 to ${fenceMax}`, fence);
  }
  return fence;
}

/** Returns the resources to check: those in `named`, otherwise all resources of the lease. */
export function guardedResources(
  fenced: Fenced | bigint,
  named: string | readonly string[] | undefined,
): readonly string[] {
  if (named !== undefined) return resourcesOf(named);
  if (isObject(fenced)) return resourcesOf(fenced["resources"]);
  throw new InvalidOptionError("resource", "given when the fence is a plain bigint", undefined);
}

/**
 * Returns the resource to name in an error about one row or key: `named`, otherwise the first
 * resource of the lease, otherwise `fallback`.
 */
export function subjectOf(
  fenced: Fenced | bigint,
  named: string | undefined,
  fallback: string,
): string {
  if (named !== undefined) return resourcesOf(named)[0] ?? fallback;
  const resources: unknown = isObject(fenced) ? fenced["resources"] : undefined;
  const first: unknown = Array.isArray(resources) ? resources[0] : undefined;
  return typeof first === "string" ? first : fallback;
}

/**
 * Reports to the lease that a guard refused its write. The lock manager of the lease then emits the
 * `fence-rejected` event.
 */
export function reportRejection(fenced: Fenced | bigint, event: FenceRejection): void {
  if (!isObject(fenced)) return;
  const report: unknown = fenced[rejectionMethod];
  if (typeof report !== "function") return;
  try {
    report.call(fenced, event);
  } catch {
    // The error is ignored: the caller must receive the FenceRejectedError, not an error of the
    // report.
  }
}

/** Reports to the lease that its write is stale. Returns the error for the guard to throw. */
export function rejection(fenced: Fenced | bigint, event: FenceRejection): FenceRejectedError {
  reportRejection(fenced, event);
  return new FenceRejectedError(event.resource, event.fence, event.seen);
}

/** Parses a fence that a server sent as text. Throws StoreError for any other value. */
export function parseFence(value: unknown, where: string): bigint {
  if (typeof value === "string" && /^\d{1,19}$/.test(value)) return BigInt(value);
  throw new StoreError(
    `${where} holds ${JSON.stringify(String(value))} where a fence belongs (BIGINT in SQL)`,
  );
}

const guardKeyBytesMax = 512;

/**
 * Returns the guard-table key of a resource: its name, or the SHA-256 of its name if that is longer
 * than 512 bytes (SQL indexes limit key length) or contains a zero character (invalid in Postgres).
 */
export function guardKey(resource: string): string {
  if (Buffer.byteLength(resource) <= guardKeyBytesMax && !resource.includes("\0")) return resource;
  return `sha256:${createHash("sha256").update(resource).digest("hex")}`;
}

export function isObject(value: unknown): value is Record<PropertyKey, unknown> {
  return typeof value === "object" && value !== null;
}
