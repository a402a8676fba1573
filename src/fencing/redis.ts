/** Guards for values in Redis or Valkey: value and fence change together, in one script. */

import { durationMs, type Duration } from "../core/time/durations.ts";
import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { admission, type FenceStore } from "./fence-store.ts";
import { fenceOf, parseFence, rejection, subjectOf, type Fenced } from "./guard.ts";
import { admitScript, readScript, redisConnection, runScript } from "./redis-scripts.ts";
import { writeScript } from "./redis-scripts.ts";

export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";

/**
 * A fenced value is one hash per key with the fields `value`, `fence` and `until`. Both value and
 * fence are in one key, so a Redis Cluster needs no hash tag and a delete removes both.
 */

export interface FencedDeleteOptions {
  /**
   * Time after the last write until the server may forget the fence. A stale write that is delayed
   * for longer passes.
   * @default never: the key stays until you delete it
   */
  readonly forgetAfter?: Duration;
  /** Resource to name in the error of a stale write. @default the first resource of the lease */
  readonly resource?: string;
}

export interface FencedSetOptions extends FencedDeleteOptions {
  /** Time for which the value can be read. The fence outlives it. @default for ever */
  readonly ttl?: Duration;
}

export interface FencedValue {
  /** Undefined if the value was deleted or its `ttl` is over. */
  readonly value: string | undefined;
  /** Greatest fence that has written this key. */
  readonly fence: bigint;
}

const durationMsMax = 10 * 365 * 86_400_000;

/**
 * Writes `value` and the fence if the fence is not smaller than the stored one. Rejects with
 * FenceRejectedError if the fence is stale, and with StoreError if the key holds anything but a
 * fenced value; nothing is written then.
 */
export async function fencedSet(
  client: unknown,
  fenced: Fenced | bigint,
  key: string,
  value: string,
  options: FencedSetOptions = {},
): Promise<void> {
  knownOptions("options", options, ["ttl", "forgetAfter", "resource"]);
  if (typeof value !== "string") throw new InvalidOptionError("value", "a text", value);
  const ttlMs = orZero("ttl", options.ttl, 1);
  const forgetMs = orZero("forgetAfter", options.forgetAfter, Math.max(1, ttlMs));
  await write(client, fenced, key, options.resource, ["set", value, String(ttlMs), `${forgetMs}`]);
}

/** Deletes the value and keeps the fence, under the same rule as `fencedSet`. */
export async function fencedDelete(
  client: unknown,
  fenced: Fenced | bigint,
  key: string,
  options: FencedDeleteOptions = {},
): Promise<void> {
  knownOptions("options", options, ["forgetAfter", "resource"]);
  const forgetMs = orZero("forgetAfter", options.forgetAfter, 1);
  await write(client, fenced, key, options.resource, ["delete", "", "0", String(forgetMs)]);
}

/**
 * Reads a fenced value with its fence. Resolves to undefined if the key does not exist. Rejects
 * with StoreError if it holds anything but a fenced value.
 */
export async function fencedGet(client: unknown, key: string): Promise<FencedValue | undefined> {
  const connection = redisConnection(client);
  const reply = await runScript(connection, readScript, checkedKey(key), []);
  const [verdict, fence, value] = replyOf(reply);
  if (verdict === "none") return undefined;
  if (verdict !== "ok") throw foreign(key, fence);
  return {
    fence: parseFence(fence, key),
    value: typeof value === "string" ? value : undefined,
  };
}

export interface RedisFencesOptions {
  /** Key prefix, put before the name of the resource. @default "holdfast:guard:" */
  readonly prefix?: string;
  /** Time after the last accepted request until the server may forget a fence. @default never */
  readonly forgetAfter?: Duration;
}

/** Keeps the fences of the HTTP guard in Redis, one key per resource. */
export function redisFences(client: unknown, options: RedisFencesOptions = {}): FenceStore {
  knownOptions("options", options, ["prefix", "forgetAfter"]);
  const { prefix = "holdfast:guard:" } = options;
  if (typeof prefix !== "string") throw new InvalidOptionError("prefix", "a text", prefix);
  const forgetMs = orZero("forgetAfter", options.forgetAfter, 1);
  const connection = redisConnection(client);
  return {
    admit: async (resource, fence) => {
      const key = prefix + resource;
      const args = [String(fence), String(forgetMs)];
      const reply = await runScript(connection, admitScript, key, args);
      return admission(fence, parseFence(reply, key));
    },
  };
}

async function write(
  client: unknown,
  fenced: Fenced | bigint,
  key: string,
  named: string | undefined,
  args: readonly string[],
): Promise<void> {
  const connection = redisConnection(client);
  const fence = fenceOf(fenced);
  const resource = subjectOf(fenced, named, checkedKey(key));
  const reply = await runScript(connection, writeScript, key, [String(fence), ...args]);
  const [verdict, detail] = replyOf(reply);
  if (verdict === "ok") return;
  if (verdict !== "stale") throw foreign(key, detail);
  const seen = parseFence(detail, key);
  throw rejection(fenced, { resource, fence, seen, guard: "redis" });
}

function replyOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw new StoreError("the guard script returned something else than a list", { cause: reply });
}

function foreign(key: string, what: unknown): StoreError {
  return new StoreError(
    `the key "${key}" holds ${String(what)} and not a fenced value: fenced and plain writes ` +
      "cannot share a key",
  );
}

function checkedKey(key: unknown): string {
  if (typeof key === "string" && key.length > 0) return key;
  throw new InvalidOptionError("key", "a text that is not empty", key);
}

function orZero(option: string, value: Duration | undefined, minMs: number): number {
  return value === undefined ? 0 : durationMs(option, value, { minMs, maxMs: durationMsMax });
}
