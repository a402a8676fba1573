import { durationMs, type Duration } from "../core/time/durations.ts";
import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { admission } from "./fence-store.ts";
import { parseFence } from "./guard.ts";
import { lowerEach, type Lowering, type LowerableFenceStore } from "./lower-fence.ts";
import { foreign, replyOf } from "./redis-replies.ts";
import { redisConnection, redisMs, runScript } from "./redis-run.ts";
import { admitScript, lowerScript } from "./redis-scripts.ts";

/** Limit for the time for which a value or a fence is kept. */
export const keptMsMax: number = 10 * 365 * 86_400_000;

export interface RedisFencesOptions {
  /** Key prefix, put before the name of the resource. @default "holdfast:guard:" */
  readonly prefix?: string;
  /** Time after the last accepted request until the server may forget a fence. @default never */
  readonly forgetAfter?: Duration;
}

/** Returns a fence store that keeps the fences of the HTTP guard in Redis, one key per resource. */
export function redisFences(
  client: unknown,
  options: RedisFencesOptions = {},
): LowerableFenceStore {
  knownOptions("options", options, ["prefix", "forgetAfter"]);
  const { prefix = "holdfast:guard:", forgetAfter } = options;
  if (typeof prefix !== "string") throw new InvalidOptionError("prefix", "a text", prefix);
  const bounds = { minMs: 1, maxMs: keptMsMax };
  const forgetMs = forgetAfter === undefined ? 0 : durationMs("forgetAfter", forgetAfter, bounds);
  const connection = redisConnection(client);
  return {
    admit: async (resource, fence) => {
      const key = prefix + resource;
      const args = [String(fence), String(forgetMs)];
      const reply = await runScript(connection, admitScript, key, args);
      return admission(fence, parseFence(reply, key));
    },
    lower: (fenced, lowerOptions = {}) =>
      lowerEach(
        fenced,
        lowerOptions,
        (resource) => redisMs(connection, prefix + resource),
        (resource, lowering) => lowerKey(client, prefix + resource, lowering),
      ),
  };
}

/**
 * Replaces the stored fence of one key by `fence` if it is greater than `limit`. Resolves to true
 * if the stored fence was replaced.
 */
export async function lowerKey(
  client: unknown,
  key: string,
  { fence, limit }: Lowering,
): Promise<boolean> {
  const connection = redisConnection(client);
  const args = [String(fence), String(limit)];
  const [verdict, detail] = replyOf(await runScript(connection, lowerScript, key, args));
  if (verdict !== "ok") throw foreign(key, detail);
  return Number(detail) === 1;
}
