import { ScriptCall, type NodeCall } from "../commands/node-call.ts";
import { nodeRecordKey, shardCount } from "../commands/keys.ts";
import { deploymentArgs } from "../commands/modes.ts";
import { numberOf, serverMsOf } from "../commands/decode.ts";
import { refusal, unexpected } from "../commands/refusals.ts";
import * as scripts from "../scripts/generated.ts";
import type { StoreSettings } from "../protocol/store-settings.ts";

/**
 * Way in which a node was admitted: with copied counters, at the first start, or by clocks only.
 */
export type AdmissionMode = "copy" | "bootstrap" | "clock";

/** Node record: the hash that Holdfast keeps on each server about its process and its admission. */
export interface NodeRecord {
  readonly runId: string;
  readonly admitted: boolean;
  readonly everAdmitted: boolean;
  readonly mode: AdmissionMode | undefined;
  /**
   * Start of the quarantine, as text from the record. An admission sends it back, to identify the
   * quarantine.
   */
  readonly since: string;
  readonly serverMs: number;
  /** Lower bound for the time since the server started. */
  readonly uptimeMs: number;
  readonly ttlMaxMs: number;
  /**
   * Last time at which a client with admission off used the node, by the node's clock. The script
   * updates it at most once an hour.
   */
  readonly offSeenMs?: number | undefined;
  /** Floor: every fence that the node grants is greater than this number. */
  readonly floor: number;
  readonly counters: ReadonlyMap<number, number>;
}

/**
 * Returns the call that reads the node record, after a check that the record belongs to the running
 * process.
 */
export function nodeRecordCall(options: StoreSettings): NodeCall<NodeRecord> {
  const read = (text: string): NodeRecord => readRecord(text, options.ttlMaxMs);
  const form = { script: scripts.nodeRecord, verifies: true, alwaysVerify: true, read };
  return new ScriptCall(form, [nodeRecordKey], deploymentArgs(options));
}

export type AdmitReply =
  | { readonly kind: "admitted" }
  | { readonly kind: "wait"; readonly leftMs: number }
  | { readonly kind: "changed" };

export interface AdmitRequest {
  readonly mode: AdmissionMode;
  readonly record: NodeRecord;
  readonly quarantineMs: number;
  readonly floor: number;
  /**
   * This client's wall time in µs, as a second lower limit for fences. If it is far ahead of the
   * node's own time, the node uses a smaller number. 0 if counters are copied.
   */
  readonly wallUs: number;
  readonly counters: ReadonlyMap<number, number>;
}

export function admitCall(request: AdmitRequest): NodeCall<AdmitReply> {
  const { mode, record, quarantineMs, floor, wallUs, counters } = request;
  const args = [mode, record.runId, record.since, String(quarantineMs), String(floor)];
  args.push(String(wallUs));
  for (const [shard, counter] of counters) args.push(String(shard), String(counter));
  return new ScriptCall({ script: scripts.admit, read: readAdmit }, [nodeRecordKey], args);
}

/** Parses the reply of node-record.lua: "W sec usec uptime field value …", or "X …" (refused). */
function readRecord(text: string, ttlMaxMs: number): NodeRecord {
  const words = text.split(" ");
  if (words[0] === "X") throw refusal(words);
  if (words[0] !== "W") throw unexpected(text);
  const fields = new Map<string, string>();
  const counters = new Map<number, number>();
  for (let index = 4; index + 1 < words.length; index += 2) {
    const [name = "", value = ""] = words.slice(index, index + 2);
    const shard = /^\d+$/.test(name) ? Number(name) : -1;
    if (shard >= 0 && shard < shardCount) counters.set(shard, numberOf(value, text));
    else fields.set(name, value);
  }
  return {
    runId: fields.get("rid") ?? "",
    admitted: fields.get("st") === "A",
    everAdmitted: fields.get("ever") === "1",
    mode: fields.get("mode") as AdmissionMode | undefined,
    since: fields.get("since") ?? "0",
    serverMs: serverMsOf(words[1], words[2], text),
    // The uptime is the difference of two times cut to whole seconds. It may be almost a second too
    // long.
    uptimeMs: Math.max(0, numberOf(words[3], text) - 1) * 1_000,
    ttlMaxMs: numberOf(fields.get("max") ?? String(ttlMaxMs), text),
    offSeenMs: fields.has("off") ? numberOf(fields.get("off"), text) : undefined,
    floor: numberOf(fields.get("floor") ?? "0", text),
    counters,
  };
}

/**
 * Parses the reply of admit.lua: "A" (admitted), "L ms" (the quarantine lasts so long), "C" (the
 * record has changed), or "X …" (refused).
 */
function readAdmit(text: string): AdmitReply {
  const words = text.split(" ");
  switch (words[0]) {
    case "A":
      return { kind: "admitted" };
    case "L":
      return { kind: "wait", leftMs: numberOf(words[1], text) };
    case "C":
      return { kind: "changed" };
    case "X":
      throw refusal(words);
    default:
      throw unexpected(text);
  }
}
