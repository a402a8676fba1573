import * as scripts from "../scripts/generated.ts";
import { readInspect } from "./decode.ts";
import type { Deployment } from "./deployment.ts";
import type { Encoding } from "./encode.ts";
import { ScriptCall, type NodeCall } from "./node-call.ts";
import { acquireCall, ReleaseCall, RenewCall, TouchCall } from "./operation-call.ts";
import {
  channelOf,
  clusterChannelOf,
  clusterQueueKeyOf,
  counterKeyOf,
  nodeRecordKey,
  queueKeyOf,
} from "./keys.ts";
import type {
  AcquireReply,
  InspectReply,
  Place,
  PlaceLeft,
  ReleaseReply,
  RenewReply,
  TouchReply,
} from "./operation.ts";

/** Owner and fence of a lock, which form the value of its key. */
export interface Held {
  readonly owner: string;
  readonly fenceNumber: number;
}

/**
 * Retention of the fence counters in a Cluster. A week is longer than any lease (a day at most) and
 * any difference of clocks.
 */
const retentionMs = "604800000";

/** Returns the arguments after the verify flag, for every script that reads the node record. */
export function deploymentArgs(options: Deployment): readonly string[] {
  return [options.admission, options.wireFormat, String(options.ttlMaxMs)];
}

const inspectForm = { script: scripts.inspect, read: readInspect };

/**
 * Makes the calls for the steps of the protocol, for one kind of server and with or without fences.
 */
export class Mode {
  readonly encoding: Encoding;
  /** Returns the channel on which the waiters of a manager are notified, by its base. */
  readonly channelOf: (key: string, base: string) => string;
  /**
   * True if one call may have several operations. False in a Cluster, where the keys of operations
   * may be in different slots.
   */
  readonly hasLists: boolean;

  constructor(encoding: Encoding, channels: (key: string, base: string) => string) {
    this.encoding = encoding;
    this.channelOf = channels;
    this.hasLists = channels === channelOf;
  }

  get fencing(): boolean {
    return this.encoding.fences;
  }

  acquire(
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    proposal: number,
    place?: Place,
  ): NodeCall<AcquireReply> {
    const kind = "acquire";
    return acquireCall(this.encoding, { kind, keys, owner, ttlMs, fence: proposal, place });
  }

  /** Raises the stored fence to `fence`, extends the lock (`ttlMs` > 0), or proves it. */
  touch(
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    fence: number,
  ): NodeCall<TouchReply> {
    return new TouchCall(this.encoding, { kind: "touch", keys, owner, ttlMs, fence });
  }

  /** Extends many locks of one key each. Called only if `hasLists` is true. */
  renew(keys: readonly string[], held: readonly Held[], ttlMs: number): NodeCall<RenewReply> {
    const operations = held.map(({ owner, fenceNumber }, index) => {
      const kind = "touch" as const;
      return { kind, keys: [keys[index] ?? ""], owner, ttlMs, fence: fenceNumber };
    });
    return new RenewCall(this.encoding, operations);
  }

  /**
   * Deletes the keys of `owner`. With the `fence` of the grant (0 if unknown), the server can
   * compare the whole value and need not search for the owner in it.
   */
  release(
    keys: readonly string[],
    owner: string,
    left: PlaceLeft = "",
    fence = 0,
  ): NodeCall<ReleaseReply> {
    return new ReleaseCall(this.encoding, { kind: "release", keys, owner, fence, left });
  }

  inspect(key: string): NodeCall<InspectReply> {
    return new ScriptCall(inspectForm, [key, this.encoding.queueOf(key)], []);
  }
}

const plain: Encoding = {
  script: scripts.plain,
  fences: false,
  record: undefined,
  strict: false,
  counterOf: undefined,
  queueOf: queueKeyOf,
  head: () => [""],
};

/** Encoding without fences in a Cluster: all keys and channels of a lock are in one slot. */
const clusterPlain: Encoding = {
  ...plain,
  queueOf: clusterQueueKeyOf,
  head: () => ["cluster"],
};

/**
 * Mode without fences. An acquire of one lock is a plain SET, which checks no queue: it may get the
 * lock before the waiters.
 */
export const plainMode: Mode = new Mode(plain, channelOf);

/**
 * Mode without fences in a Cluster. It has no queues: callers that wait make attempts at intervals.
 */
export const plainClusterMode: Mode = new Mode(clusterPlain, clusterChannelOf);

/**
 * Mode with fences in a Cluster. Each lock has its own counter: a script cannot read a node record
 * in another slot.
 */
export const clusterMode: Mode = new Mode(
  {
    ...clusterPlain,
    script: scripts.cluster,
    fences: true,
    counterOf: counterKeyOf,
    head: (counterCount) => [String(counterCount), retentionMs],
    releases: clusterPlain,
  },
  clusterChannelOf,
);

/** Returns the mode with fences from the counters in the node record. */
export function fencedMode(deployment: Deployment): Mode {
  const encoding = {
    ...plain,
    script: scripts.fenced,
    fences: true,
    record: { key: nodeRecordKey, deployment: deploymentArgs(deployment) },
    // A cached script does not prove that the process is the same: a replica caches a script that
    // it refused to run, and a master that was demoted and promoted again keeps its cached scripts.
    strict: deployment.admission === "strict",
    head: () => [],
    releases: plain,
  };
  return new Mode(encoding, channelOf);
}
