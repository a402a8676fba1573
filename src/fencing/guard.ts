import { createHash } from "node:crypto";
import { FenceRejectedError, InvalidOptionError, StoreError } from "../core/errors.ts";
import { resourcesOf } from "../core/resources.ts";

/**
 * The one rule of every guard: accept when fence >= last, store it with the write.
 *
 * `>=` and not `>`: one tenure writes more than once. "With the write": a guard that compares in
 * one step and writes in another lets a later holder in between the two.
 */

/** What a guard takes: a lease, or anything else that carries a fence and says what it is for. */
export interface Fenced {
  /** A lease of a store without fences throws UnsupportedError here. */
  readonly fence: bigint;
  readonly resources: readonly string[];
}

export type GuardKind = "postgres" | "mysql" | "redis" | "http";

/** What a guard tells the lease whose write it refused. */
export interface FencedOff {
  readonly resource: string;
  readonly fence: bigint;
  /** The greater fence; undefined where the guard could not learn it. */
  readonly seen: bigint | undefined;
  readonly guard: GuardKind;
}

/** The greatest fence that fits BIGINT; every guard compares exactly up to here. */
export const fenceMax: bigint = 9_223_372_036_854_775_807n;

const fencedOffMethod = Symbol.for("holdfast.lease.fencedOff");

/**
 * Reads and checks the fence. Every guard calls it before it sends anything, so that a lease
 * without a fence, or a fence that no BIGINT can hold, leaves nothing written.
 */
export function fenceOf(fenced: Fenced | bigint): bigint {
  const fence: unknown = isObject(fenced) ? fenced["fence"] : fenced;
  if (typeof fence !== "bigint" || fence <= 0n || fence > fenceMax) {
    throw new InvalidOptionError("fence", `a bigint from 1 to ${fenceMax}`, fence);
  }
  return fence;
}

/** The resources a guard is about: those named in the call, else those of the lease, in order. */
export function guardedResources(
  fenced: Fenced | bigint,
  named: string | readonly string[] | undefined,
): readonly string[] {
  if (named !== undefined) return resourcesOf(named);
  if (isObject(fenced)) return resourcesOf(fenced["resources"]);
  throw new InvalidOptionError("resource", "given when the fence is a plain bigint", undefined);
}

/** The name to put in an error about a single row or key, which may guard several resources. */
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

/** Tells the lease, which tells its manager's listeners (`fenced-off`). */
export function reportFencedOff(fenced: Fenced | bigint, event: FencedOff): void {
  if (!isObject(fenced)) return;
  const report: unknown = fenced[fencedOffMethod];
  if (typeof report !== "function") return;
  try {
    report.call(fenced, event);
  } catch {
    // Telling is a courtesy; the caller must get the rejection itself and nothing in its place.
  }
}

/** Reports a stale write and makes the error for the guard to throw. */
export function rejection(fenced: Fenced | bigint, event: FencedOff): FenceRejectedError {
  reportFencedOff(fenced, event);
  return new FenceRejectedError(event.resource, event.fence, event.seen);
}

/** Reads a fence that a server sent as text. Anything else is not a guard's data. */
export function parseFence(value: unknown, where: string): bigint {
  if (typeof value === "string" && /^\d{1,19}$/.test(value)) return BigInt(value);
  throw new StoreError(`${where} holds ${JSON.stringify(String(value))} where a fence belongs`);
}

const guardKeyBytesMax = 512;

/**
 * The name of a resource as the key of a guard row. Indexes of SQL servers take short keys only
 * and Postgres no zero character: such names are represented by their hash.
 */
export function guardKey(resource: string): string {
  if (Buffer.byteLength(resource) <= guardKeyBytesMax && !resource.includes("\0")) return resource;
  return `sha256:${createHash("sha256").update(resource).digest("hex")}`;
}

export function isObject(value: unknown): value is Record<PropertyKey, unknown> {
  return typeof value === "object" && value !== null;
}
