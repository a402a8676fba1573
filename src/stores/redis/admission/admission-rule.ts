import type { AdmissionMode, NodeRecord } from "./node-record.ts";
import { quarantineMs, type StoreSettings } from "../protocol/store-settings.ts";

/** State of a node at the last read: its record, or the time without a reply (by our clock). */
export type NodeView =
  | { readonly kind: "record"; readonly record: NodeRecord }
  | { readonly kind: "silent"; readonly forMs: number };

export type Verdict =
  | { readonly kind: "admit"; readonly mode: AdmissionMode; readonly quarantineMs: number }
  | { readonly kind: "wait"; readonly leftMs: number };

/**
 * Decides if the blank node at `index` may vote, and in which mode it is admitted.
 *
 * - `copy`: a quorum of other nodes is admitted. The node waits out a quarantine, so that every
 *   lease it may have forgotten is over. Then it gets the fence counters of those nodes.
 * - `bootstrap`: every node replied, and none was ever admitted: a first start, or all data is
 *   gone. The nodes may vote when all of them have waited for a quarantine. Admitting one earlier
 *   would make the others look as if only they had lost their data.
 * - `clock`: for longer than a quarantine, fewer than a quorum of other nodes were admitted, so
 *   there are no counters to copy. Fences then rest on clocks, and a warning is emitted. Not used
 *   if less than a quorum of nodes replies: no lock could be granted anyway.
 */
export function verdict(
  options: StoreSettings,
  views: readonly NodeView[],
  index: number,
  size: number,
): Verdict {
  const own = views[index];
  if (own === undefined || own.kind === "silent") return { kind: "wait", leftMs: Infinity };
  const records = views.flatMap((view) => (view.kind === "record" ? [view.record] : []));
  // Longest TTL of any lease that a client of these nodes may have.
  const ttlMaxMs = Math.max(options.ttlMaxMs, ...records.map((record) => record.ttlMaxMs));
  const waitMs = quarantineMs(options, ttlMaxMs);
  const firstStart =
    records.length === views.length &&
    records.every((record) => !record.admitted && !record.everAdmitted);
  // Time for which each node has certainly not voted: its uptime, or the time since it became
  // blank.
  const waitedMs = records.map((record) => Math.max(record.uptimeMs, blankForMs(record)));
  if (firstStart) return ready("bootstrap", waitMs, waitMs - Math.min(...waitedMs));

  const leftMs = waitMs - blankForMs(own.record);
  const others = views.filter((_, other) => other !== index);
  const admitted = others.filter((view) => view.kind === "record" && view.record.admitted);
  if (admitted.length >= size) return ready("copy", waitMs, leftMs);

  // Too few nodes reply for any grant, perhaps only to this client. It is unknown how long to wait.
  if (records.length < size) return { kind: "wait", leftMs: Infinity };
  // Fewer than `size` other nodes are admitted since at least N - size of them are absent (blank or
  // silent): 2 others if `size` is 3 of 5 nodes. `absentMs` has the longest absence first, so the
  // entry at N - size - 1 is the time since then.
  const absentMs = others
    .filter((view) => !admitted.includes(view))
    .map((view) => (view.kind === "record" ? blankForMs(view.record) : view.forMs))
    .sort((a, b) => b - a);
  const shortForMs = absentMs[views.length - size - 1] ?? blankForMs(own.record);
  return ready("clock", waitMs, Math.max(leftMs, waitMs - shortForMs));
}

function ready(mode: AdmissionMode, waitMs: number, leftMs: number): Verdict {
  return leftMs > 0 ? { kind: "wait", leftMs } : { kind: "admit", mode, quarantineMs: waitMs };
}

export function blankForMs(record: NodeRecord): number {
  return Math.max(0, record.serverMs - Number(record.since));
}

/**
 * Returns the greatest counter of every shard (lock keys that share a counter) among `records`. A
 * node that is admitted gets counters that are not smaller.
 */
export function greatestCounters(records: readonly NodeRecord[]): {
  readonly floor: number;
  readonly counters: Map<number, number>;
} {
  const counters = new Map<number, number>();
  let floor = 0;
  for (const record of records) {
    floor = Math.max(floor, record.floor);
    for (const [shard, counter] of record.counters) {
      counters.set(shard, Math.max(counter, counters.get(shard) ?? 0));
    }
  }
  return { floor, counters };
}

/** Returns a text with the reason why a node is blank, which is why it may not vote. */
export function whyBlank(everAdmitted: boolean): string {
  return everAdmitted
    ? "it restarted, or another server took its place, since it was admitted"
    : "it has no record of its own (a first start, or its data is gone)";
}

/** Returns a text with the time until the quarantine ends. */
export function whenLeft(leftMs: number): string {
  if (!Number.isFinite(leftMs)) return "when it may vote is not known yet";
  return leftMs <= 0 ? "it may vote soon" : `it may vote in about ${Math.ceil(leftMs / 1_000)} s`;
}
