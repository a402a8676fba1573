import * as scripts from "../scripts/generated.ts";
import type { Script } from "../scripts/generated.ts";
import {
  channelOf,
  clusterChannelOf,
  clusterQueueKeyOf,
  counterKeyOf,
  nodeRecordKey,
  queueKeyOf,
} from "./keys.ts";

/**
 * Options that all clients of a node must agree on: scripts compare them with the record of the
 * node.
 */
export interface Deployment {
  readonly admission: "strict" | "off";
  /** Longest TTL that any client may request. */
  readonly ttlMaxMs: number;
  /** Wire format that the node record must have. A node with another format refuses this client. */
  readonly wireFormat: string;
}

/**
 * Mode: what differs between kinds of servers, and between locks with and without fences. It has
 * the script, the keys besides the lock keys, and the names of channels.
 */
export interface Mode {
  readonly script: Script;
  /** True if a lock's value is "owner|fence"; false if it is only the owner. */
  readonly fences: boolean;
  /**
   * Key of the node record (hash that Holdfast keeps on each server, with the fence counters), and
   * the arguments that the script compares with the record.
   */
  readonly record: { readonly key: string; readonly deployment: readonly string[] } | undefined;
  /** True if each call of the script checks in which process it runs. */
  readonly strict: boolean;
  /** Returns the key of a lock's fence counter; undefined if a counter is no key of its own. */
  readonly counterOf: ((key: string) => string) | undefined;
  readonly queueOf: (key: string) => string;
  /** Returns the channel on which the waiters of a manager are notified, by its base. */
  readonly channelOf: (key: string, base: string) => string;
  /**
   * Further arguments of the script. They stand before the operations, as the header of the script
   * says under ARGV.
   */
  readonly settings: readonly string[];
  /**
   * True if one call may have several operations. False in a Cluster, where the keys of operations
   * may be in different slots.
   */
  readonly hasLists: boolean;
  /**
   * Mode in which a script call is sent that has only releases. These need neither fences nor the
   * node record, so the simplest script can run them. Undefined if it is this mode.
   */
  readonly releases?: Mode | undefined;
}

/**
 * Retention of the fence counters in a Cluster. A week is longer than any lease (a day at most) and
 * any difference of clocks.
 */
const retentionMs = "604800000";

/** Returns the arguments that follow the verify flag in every script that reads the node record. */
export function deploymentArgs(options: Deployment): readonly string[] {
  return [options.admission, options.wireFormat, String(options.ttlMaxMs)];
}

/**
 * Mode without fences. An acquire of one lock is a plain SET, which checks no queue: it may get the
 * lock before the waiters.
 */
export const plainMode: Mode = {
  script: scripts.plain,
  fences: false,
  record: undefined,
  strict: false,
  counterOf: undefined,
  queueOf: queueKeyOf,
  channelOf,
  settings: [""],
  hasLists: true,
};

/**
 * Mode without fences in a Cluster. All keys and channels of a lock are in one slot. It has no
 * queues: callers that wait make attempts at intervals.
 */
export const plainClusterMode: Mode = {
  ...plainMode,
  queueOf: clusterQueueKeyOf,
  channelOf: clusterChannelOf,
  settings: ["cluster"],
  hasLists: false,
};

/**
 * Mode with fences in a Cluster. Each lock has its own counter: a script cannot read a node record
 * in another slot.
 */
export const clusterMode: Mode = {
  ...plainClusterMode,
  script: scripts.cluster,
  fences: true,
  counterOf: counterKeyOf,
  settings: [retentionMs],
  releases: plainClusterMode,
};

/** Returns the mode with fences from the counters in the node record. */
export function fencedMode(deployment: Deployment): Mode {
  return {
    ...plainMode,
    script: scripts.fenced,
    fences: true,
    record: { key: nodeRecordKey, deployment: deploymentArgs(deployment) },
    // Each call checks the process, because a script in the server's cache does not prove that the
    // process is the same: a replica caches a script that it refused to run, and a master that was
    // demoted and promoted again keeps its cached scripts.
    strict: deployment.admission === "strict",
    settings: [],
    releases: plainMode,
  };
}
