import type { Batching } from "./batch.ts";
import type { NodeCall } from "./node-call.ts";
import { ScriptCall } from "./node-call.ts";
import {
  readInspect,
  readRelease,
  type AcquireReply,
  type InspectReply,
  type ReleaseReply,
  type TouchReply,
} from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

/** How the steps of the protocol are said to a server. */
export interface Dialect {
  readonly fencing: boolean;
  /** How several operations go in one call; undefined where they cannot. */
  readonly batching: Batching | undefined;
  acquire(
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    proposal: number,
  ): NodeCall<AcquireReply>;
  /** Raises the fence, extends (`ttlMs` > 0), or proves. */
  touch(keys: readonly string[], owner: string, ttlMs: number, fence: number): NodeCall<TouchReply>;
}

/** Giving back needs neither a fence nor the node record, whatever the dialect. */
export function releaseCall(keys: readonly string[], owner: string): NodeCall<ReleaseReply> {
  return new ScriptCall(releaseForm, keys, [owner]);
}

const releaseForm = { script: scripts.release, read: readRelease, code: "R" } as const;
const inspectForm = { script: scripts.inspect, read: readInspect };

export function inspectCall(key: string): NodeCall<InspectReply> {
  return new ScriptCall(inspectForm, [key], []);
}
