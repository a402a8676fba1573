import { channelOf, inspectCall, queueKeyOf, reservingArgs, type Dialect } from "./dialect.ts";
import { fenceText } from "./fence-text.ts";
import { LonePartCall } from "./lone-part-call.ts";
import { ProposingCall, ScriptCall } from "./node-call.ts";
import { shardOf } from "./commands/shards.ts";
import { releaseCall } from "./release-call.ts";
import {
  readAcquire,
  readBatched,
  readRenew,
  readTouch,
  renewAfterResend,
  touchAfterResend,
} from "./replies.ts";
import * as scripts from "./scripts/generated.ts";
import type { Deployment } from "./commands/deployment.ts";

/** The key of the one record that Holdfast keeps on a node for good. */
export const nodeRecordKey = "holdfast:node";

/** What every script that reads the node record is told about this deployment. */
export function deploymentArgs(options: Deployment): readonly string[] {
  return [options.admission, options.wireFormat, String(options.ttlMaxMs)];
}

/** Fences from the counters in each node's record. */
export function fencedDialect(options: Deployment): Dialect {
  const deployment = deploymentArgs(options);
  // A cached script proves nothing about the process: a replica keeps what it refused to run, and
  // a master that was demoted and promoted again keeps what it once ran. So every call looks.
  const strict = options.admission === "strict";
  const batching = { script: scripts.batch, recordKey: nodeRecordKey, head: deployment, strict };
  const record = { key: nodeRecordKey, args: deployment };
  const looks = { record, verifies: true, alwaysVerify: strict, needsInfo: strict };
  const acquireForm = {
    ...looks,
    script: scripts.acquire,
    read: readAcquire,
    code: "A",
    queueOf: queueKeyOf,
  } as const;
  const touchForm = {
    ...looks,
    script: scripts.touch,
    read: readTouch,
    code: "T",
    afterResend: touchAfterResend,
  } as const;
  const renewForm = {
    ...looks,
    script: scripts.renew,
    read: readRenew,
    afterResend: renewAfterResend,
  };
  const argsOf = (
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    fence: number,
  ): string[] => {
    const args = [owner, String(ttlMs), fenceText(fence)];
    for (const key of keys) args.push(String(shardOf(key)));
    return args;
  };
  return {
    fencing: true,
    batching,
    acquire(keys, owner, ttlMs, proposal, place) {
      const args = argsOf(keys, owner, ttlMs, proposal);
      if (place === undefined) return new ProposingCall(acquireForm, keys, args, proposal);
      args.push(...reservingArgs(place));
      const part = { code: "W", keys, queueOf: queueKeyOf, args } as const;
      const granted = { kind: "granted", fence: proposal } as const;
      return new LonePartCall(batching, part, (text) => readBatched(text, granted));
    },
    touch: (keys, owner, ttlMs, fence) => {
      return new ScriptCall(touchForm, keys, argsOf(keys, owner, ttlMs, fence));
    },
    renew(keys, held, ttlMs) {
      const args = [String(ttlMs)];
      for (const { owner, fenceNumber } of held) {
        args.push(`${owner}|${fenceText(fenceNumber)}`);
      }
      return new ScriptCall(renewForm, keys, args);
    },
    release(keys, owner, place, fence = 0) {
      return releaseCall(
        batching,
        keys,
        fence === 0 ? owner : `${owner}|${fenceText(fence)}`,
        place,
      );
    },
    inspect: (key) => inspectCall(key, queueKeyOf(key)),
    channelOf,
  };
}
