import { quarantineMs, type ResolvedStoreOptions } from "../options.ts";
import type { AdmissionMode, NodeRecord } from "./node-record.ts";

/** What is known of each node: its record, or since when (our clock) it has not answered. */
export type NodeView =
  | { readonly kind: "record"; readonly record: NodeRecord }
  | { readonly kind: "silent"; readonly forMs: number };

export type Verdict =
  | { readonly kind: "admit"; readonly mode: AdmissionMode; readonly quarantineMs: number }
  | { readonly kind: "wait"; readonly leftMs: number };

/**
 * May the blank node at `index` vote, and on what ground?
 *
 * - A node without its data first sits out a quarantine, so that every lease it may have forgotten
 *   is over; only after that are the counters of a quorum of *other* admitted nodes read.
 * - If every node answers and none was ever admitted, this is a first start or a total loss: where
 *   all have been up for the length of a quarantine, they need no other. Not one before the rest:
 *   to those it would look as if they alone had lost their data.
 * - If fewer than a quorum of others have been admitted for longer than a quarantine, nobody is
 *   left to copy from: fences then rest on clocks alone, and that is said aloud. Not where even a
 *   quorum of nodes cannot be heard: there an admission would serve no grant.
 */
export function verdict(
  options: ResolvedStoreOptions,
  views: readonly NodeView[],
  index: number,
  size: number,
): Verdict {
  const own = views[index];
  if (own === undefined || own.kind === "silent") return { kind: "wait", leftMs: Infinity };
  const records = views.flatMap((view) => (view.kind === "record" ? [view.record] : []));
  // The longest TTL anybody in the deployment may have been granted.
  const ttlMaxMs = Math.max(options.ttlMaxMs, ...records.map((record) => record.ttlMaxMs));
  const waitMs = quarantineMs(options, ttlMaxMs);
  const firstStart =
    records.length === views.length &&
    records.every((record) => !record.admitted && !record.everAdmitted);
  // Up for so long, or seen blank for so long: whichever is known to be longer.
  const waitedMs = records.map((record) => Math.max(record.uptimeMs, blankForMs(record)));
  if (firstStart) return ready("bootstrap", waitMs, waitMs - Math.min(...waitedMs));

  const leftMs = waitMs - blankForMs(own.record);
  const others = views.filter((_, other) => other !== index);
  const admitted = others.filter((view) => view.kind === "record" && view.record.admitted);
  if (admitted.length >= size) return ready("copy", waitMs, leftMs);

  // Too few can be heard here for any grant: perhaps it is we who are cut off.
  if (records.length < size) return { kind: "wait", leftMs: Infinity };
  // The shortage has lasted as long as the (N - q)th longest absence among the others.
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

/** The counters a node must not fall below: the greatest of every shard among `records`. */
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
