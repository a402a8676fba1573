import { nodeRecordKey } from "../commands/keys.ts";
import { ScriptCall, type NodeCall } from "../commands/node-call.ts";
import { unexpected } from "../commands/refusals.ts";
import * as scripts from "../scripts/generated.ts";
import type { StoreSettings } from "../protocol/store-settings.ts";

/** Result of one call of the probe script. */
export interface Probe {
  /** Time of the server's clock; undefined if it may not be read. */
  readonly serverMs: number | undefined;
  /** Needed commands that this user may not run; undefined if the server cannot check them. */
  readonly denied: readonly string[] | undefined;
  /** Commands for wake-ups that this user may not run. */
  readonly wakeUpsDenied: readonly string[];
  /** Error with which the server refuses a write; undefined if it accepts writes. */
  readonly writeRefusal: string | undefined;
  readonly record: ProbedRecord;
}

/**
 * Fields of the node record, the hash `holdfast:node` that Holdfast keeps on each server. If the
 * server has restarted since, the record may still belong to the process before.
 */
export interface ProbedRecord {
  readonly runId: string | undefined;
  readonly state: string | undefined;
  readonly everAdmitted: boolean;
  readonly mode: string | undefined;
  readonly format: string | undefined;
  readonly ttlMaxMs: number | undefined;
  /**
   * Last time at which a client with admission off used the node, by the node's clock. Updated at
   * most once an hour.
   */
  readonly offSeenMs: number | undefined;
}

/**
 * Commands that clients and their scripts run. @1 stands for a lock key, @2 for the key of the node
 * record. Each command must be complete: Redis 7.0 crashes when it checks an incomplete EVAL.
 */
const calls = ["EVALSHA x 0", "EVAL x 0"];
const onLocks = ["GET @1", "MGET @1", "SET @1 x", "PTTL @1", "PEXPIRE @1 1", "DEL @1"];
const onQueues = [
  "EXISTS @1",
  "ZADD @1 0 x",
  "ZREM @1 x",
  "ZSCORE @1 x",
  "ZCARD @1",
  "ZCOUNT @1 0 0",
  "ZRANGEBYSCORE @1 0 0",
];
const onRecord = ["HMGET @2 x", "HGET @2 x", "HGETALL @2", "HSET @2 x 1", "HDEL @2 x"];

/** Returns every command but INFO that a user with these options must be allowed to run. */
export function neededCommands(
  options: Pick<StoreSettings, "fencing"> & Partial<Pick<StoreSettings, "replicas">>,
  cluster: boolean,
): readonly string[] {
  const always = [...calls, "TIME", ...onLocks, ...onQueues];
  if (options.replicas !== undefined) always.push("WAIT 1 1");
  return options.fencing && !cluster ? [...always, ...onRecord] : always;
}

/**
 * Returns the commands for wake-ups. If these commands are denied, locks still work, but waiters
 * have to poll.
 */
export function wakeUpCommands(cluster: boolean): readonly string[] {
  const [publish, subscribe] = cluster ? ["SPUBLISH", "SSUBSCRIBE"] : ["PUBLISH", "SUBSCRIBE"];
  return [`${publish} holdfast:wake:x x`, `${subscribe} holdfast:wake:x`];
}

/** Returns a key that no lock has, under the prefix of the locks. */
export function probeKey(options: StoreSettings): string {
  return `${options.prefix}holdfast:probe`;
}

export function probeCall(options: StoreSettings, cluster: boolean): NodeCall<Probe> {
  const keys = [probeKey(options)];
  if (options.fencing && !cluster) keys.push(nodeRecordKey);
  const form = { script: scripts.probe, read: readProbe };
  const commands = [...neededCommands(options, cluster), ...wakeUpCommands(cluster)];
  return new ScriptCall(form, keys, commands);
}

/**
 * Parses the four lines that probe.lua returns: "D sec usec", the denied commands, the error of a
 * refused write, and the node record.
 */
export function readProbe(text: string): Probe {
  const [clock = "", denied = "", refusal = "", record = ""] = text.split("\n");
  const [kind, seconds, micros] = clock.split(" ");
  if (kind !== "D") throw unexpected(text);
  const names = denied.split(" ").filter((name) => name !== "");
  const [rid, state, , ever, mode, format, max, off] = record
    .split(" ")
    .map((word) => (word === "-" ? undefined : word));
  return {
    serverMs: seconds === "-" ? undefined : Number(seconds) * 1_000 + Number(micros) / 1_000,
    denied: names.includes("?") ? undefined : names.filter((name) => !isForWakeUps(name)),
    wakeUpsDenied: names.filter(isForWakeUps),
    writeRefusal: refusal === "" ? undefined : refusal,
    record: {
      runId: rid,
      state,
      everAdmitted: ever === "1",
      mode,
      format,
      ttlMaxMs: max === undefined ? undefined : Number(max),
      offSeenMs: off === undefined ? undefined : Number(off),
    },
  };
}

function isForWakeUps(name: string): boolean {
  return /^S?(PUBLISH|SUBSCRIBE)$/.test(name);
}
