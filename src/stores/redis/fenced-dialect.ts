import { channelOf, inspectCall, queueKeyOf, type Dialect } from "./dialect.ts";
import { LonePartCall } from "./lone-part-call.ts";
import { ScriptCall } from "./node-call.ts";
import type { ResolvedStoreOptions } from "./options.ts";
import { shardOf } from "./quorum/shards.ts";
import { releaseCall } from "./release-call.ts";
import { readAcquire, readTouch } from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

/** The key of the one record that Holdfast keeps on a node for good. */
export const nodeRecordKey = "holdfast:node";

/** What every script that reads the node record is told about this deployment. */
export function deploymentArgs(options: ResolvedStoreOptions): readonly string[] {
  return [options.admission, options.wireFormat, String(options.ttlMaxMs)];
}

/** Fences from the counters in each node's record. */
export function fencedDialect(options: ResolvedStoreOptions): Dialect {
  const deployment = deploymentArgs(options);
  // A cached script proves nothing about the process: a replica keeps what it refused to run, and
  // a master that was demoted and promoted again keeps what it once ran. So every call looks.
  const strict = options.admission === "strict";
  const batching = { script: scripts.batch, recordKey: nodeRecordKey, head: deployment, strict };
  const argsOf = (keys: readonly string[], owner: string, ttlMs: number, fence: number) => {
    const args = [owner, String(ttlMs), String(fence)];
    for (const key of keys) args.push(String(shardOf(key)));
    return args;
  };
  const how = { verifies: true, alwaysVerify: strict, needsInfo: strict };
  return {
    fencing: true,
    batching,
    acquire(keys, owner, ttlMs, proposal, place) {
      const args = argsOf(keys, owner, ttlMs, proposal);
      const queues = keys.map(queueKeyOf);
      if (place !== undefined) {
        args.push(String(place.ticket), place.id);
        return new LonePartCall(batching, { code: "W", keys, queues, args }, readAcquire);
      }
      const part = { code: "A", keys, queues, args } as const;
      const all = [nodeRecordKey, ...keys, ...queues];
      const options = { ...how, routeBy: keys[0], read: readAcquire, part };
      return new ScriptCall(scripts.acquire, all, [...deployment, ...args], options);
    },
    touch(keys, owner, ttlMs, fence) {
      const args = argsOf(keys, owner, ttlMs, fence);
      const part = { code: "T", keys, queues: [], args } as const;
      const all = [nodeRecordKey, ...keys];
      const options = { ...how, routeBy: keys[0], read: readTouch, part };
      return new ScriptCall(scripts.touch, all, [...deployment, ...args], options);
    },
    release: (keys, owner, place) => releaseCall(batching, keys, owner, place),
    inspect: (key) => inspectCall(key, queueKeyOf(key)),
    channelOf,
  };
}
