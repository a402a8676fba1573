/** Guards for values in Redis or Valkey: value and fence change together, in one script. */

import { durationMs, type Duration } from "../core/time/durations.ts";
import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { parseFence, rejection, subjectOf, type Fenced } from "./guard.ts";
import { loweringOf, type LowerFenceResult } from "./lower-fence.ts";
import { plausibleFence, type FenceLimitOptions } from "./plausible-fence.ts";
import { keptMsMax, lowerKey } from "./redis-fences.ts";
import { encoded, foreign, replyOf } from "./redis-replies.ts";
import { redisConnection, redisMs, runScript } from "./redis-run.ts";
import { readScript, writeScript } from "./redis-scripts.ts";

export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export type { LowerableFenceStore, LowerFenceOptions, LowerFenceResult } from "./lower-fence.ts";
export type { FenceLimitOptions, MaxFenceAhead } from "./plausible-fence.ts";
export { redisFences, type RedisFencesOptions } from "./redis-fences.ts";

/**
 * A fenced value is one hash per key with the fields `value`, `fence`, `until` and, for bytes,
 * `encoding`. Value and fence are in one key, so a Redis Cluster needs no hash tag, and removing
 * the key removes both.
 */

export interface FencedDeleteOptions extends FenceLimitOptions {
  /**
   * Time after the last write until the server may forget the fence. A stale write that arrives
   * after this time is accepted.
   * @default never: the key stays until you delete it
   */
  readonly forgetAfter?: Duration;
  /** Resource to name in the error of a stale write. @default the first resource of the lease */
  readonly resource?: string;
}

export interface FencedSetOptions extends FencedDeleteOptions {
  /** Time for which the value can be read. The fence stays after it. @default for ever */
  readonly ttl?: Duration;
}

export interface FencedValue<Value = string> {
  /** Undefined if the value was deleted or its `ttl` is over. */
  readonly value: Value | undefined;
  /** Greatest fence that has written this key. */
  readonly fence: bigint;
}

const deleteOptions = ["forgetAfter", "resource", "maxFenceAhead"];

/**
 * Writes `value` and the fence if the fence is not smaller than the stored one. Bytes are kept as
 * base64. Rejects with FenceRejectedError if the fence is stale, with FenceAheadError if it is
 * greater than `maxFenceAhead` allows, and with StoreError if the key holds anything but a fenced
 * value; nothing is written then. If the reply is lost, the message of the StoreError states that
 * the guard may have run.
 */
export async function fencedSet(
  client: unknown,
  fenced: Fenced | bigint,
  key: string,
  value: string | Uint8Array,
  options: FencedSetOptions = {},
): Promise<void> {
  knownOptions("options", options, ["ttl", ...deleteOptions]);
  if (typeof value !== "string" && !(value instanceof Uint8Array)) {
    throw new InvalidOptionError("value", "a text or a Buffer", value);
  }
  const { text, encoding } = encoded(value);
  const ttlMs = orZero("ttl", options.ttl, 1);
  const forgetMs = orZero("forgetAfter", options.forgetAfter, Math.max(1, ttlMs));
  const args = ["set", text, String(ttlMs), String(forgetMs), encoding];
  await write(client, fenced, key, options, args);
}

/** Deletes the value and keeps the fence, under the same rule as `fencedSet`. */
export async function fencedDelete(
  client: unknown,
  fenced: Fenced | bigint,
  key: string,
  options: FencedDeleteOptions = {},
): Promise<void> {
  knownOptions("options", options, deleteOptions);
  const forgetMs = orZero("forgetAfter", options.forgetAfter, 1);
  await write(client, fenced, key, options, ["delete", "", "0", String(forgetMs), ""]);
}

export interface FencedGetOptions {
  /** Form of the value. Bytes that `fencedSet` wrote are only read as a Buffer. @default "text" */
  readonly as?: "text" | "buffer";
}

/**
 * Reads a fenced value with its fence. Resolves to undefined if the key does not exist. Rejects
 * with StoreError if the key holds anything but a fenced value, or bytes where text is wanted.
 */
export async function fencedGet(
  client: unknown,
  key: string,
  options: FencedGetOptions & { readonly as: "buffer" },
): Promise<FencedValue<Buffer> | undefined>;
export async function fencedGet(
  client: unknown,
  key: string,
  options?: FencedGetOptions,
): Promise<FencedValue | undefined>;
export async function fencedGet(
  client: unknown,
  key: string,
  options: FencedGetOptions = {},
): Promise<FencedValue<string | Buffer> | undefined> {
  knownOptions("options", options, ["as"]);
  const { as = "text" } = options;
  if (as !== "text" && as !== "buffer") {
    throw new InvalidOptionError("as", '"text" or "buffer"', as);
  }
  const connection = redisConnection(client);
  const reply = await runScript(connection, readScript, checkedKey(key), []);
  const [verdict, fence, text, encoding] = replyOf(reply);
  if (verdict === "none") return undefined;
  if (verdict !== "ok") throw foreign(key, fence);
  const isBytes = encoding === "base64";
  if (isBytes && as === "text") {
    throw new StoreError(`the key "${key}" holds bytes: read it with { as: "buffer" }`);
  }
  const found = { fence: parseFence(fence, key) };
  if (typeof text !== "string") return { ...found, value: undefined };
  if (as === "text") return { ...found, value: text };
  return { ...found, value: Buffer.from(text, isBytes ? "base64" : "utf8") };
}

export interface LowerKeyOptions {
  /**
   * How far in the future the stored fence, as a time in microseconds since 1970, may be. A greater
   * one is replaced.
   * @default "24h"
   */
  readonly maxFenceAhead?: Duration;
}

/**
 * Replaces the fence of a fenced value by the fence of `fenced`, if the stored fence is greater
 * than `maxFenceAhead` allows. Pass a lease that was acquired after the accident.
 */
export async function lowerFence(
  client: unknown,
  fenced: Fenced | bigint,
  key: string,
  options: LowerKeyOptions = {},
): Promise<LowerFenceResult> {
  knownOptions("options", options, ["maxFenceAhead"]);
  const resource = subjectOf(fenced, undefined, checkedKey(key));
  const clock = (): Promise<number> => redisMs(redisConnection(client), key);
  const lowering = await loweringOf(fenced, resource, options.maxFenceAhead, clock);
  return { lowered: (await lowerKey(client, key, lowering)) ? 1 : 0 };
}

async function write(
  client: unknown,
  fenced: Fenced | bigint,
  key: string,
  options: FencedDeleteOptions,
  args: readonly string[],
): Promise<void> {
  const connection = redisConnection(client);
  const resource = subjectOf(fenced, options.resource, checkedKey(key));
  const clock = (): Promise<number> => redisMs(connection, key);
  const fence = await plausibleFence(fenced, resource, options.maxFenceAhead, clock);
  const reply = await runScript(connection, writeScript, key, [String(fence), ...args]);
  const [verdict, detail] = replyOf(reply);
  if (verdict === "ok") return;
  if (verdict !== "stale") throw foreign(key, detail);
  const seen = parseFence(detail, key);
  throw rejection(fenced, { resource, fence, seen, guard: "redis" });
}

function checkedKey(key: unknown): string {
  if (typeof key === "string" && key.length > 0) return key;
  throw new InvalidOptionError("key", "a text that is not empty", key);
}

function orZero(option: string, value: Duration | undefined, minMs: number): number {
  return value === undefined ? 0 : durationMs(option, value, { minMs, maxMs: keptMsMax });
}
