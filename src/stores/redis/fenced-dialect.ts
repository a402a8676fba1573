import type { Dialect } from "./dialect.ts";
import { ScriptCall, type NodeCall } from "./node-call.ts";
import type { ResolvedStoreOptions } from "./options.ts";
import { shardOf } from "./quorum/shards.ts";
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
  const calling = <Reply>(
    code: "A" | "T",
    script: scripts.Script,
    read: (text: string) => Reply,
  ): ((
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    fence: number,
  ) => NodeCall<Reply>) => {
    const record = { key: nodeRecordKey, args: deployment };
    const looks = { verifies: true, alwaysVerify: strict, needsInfo: strict };
    const form = { script, record, ...looks, read, code };
    return (keys, owner, ttlMs, fence) => {
      const args = [owner, String(ttlMs), String(fence)];
      for (const key of keys) args.push(String(shardOf(key)));
      return new ScriptCall(form, keys, args);
    };
  };
  return {
    fencing: true,
    batching: { script: scripts.batch, recordKey: nodeRecordKey, head: deployment, strict },
    acquire: calling("A", scripts.acquire, readAcquire),
    touch: calling("T", scripts.touch, readTouch),
  };
}
