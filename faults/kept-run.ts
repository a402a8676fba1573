import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readLines, type AppliedWrite, type ClientEvent } from "./history.ts";
import type { FaultEvent, History } from "./history.ts";
import { faultKinds } from "./kinds.ts";
import type { Options } from "./options.ts";

/** Facts about a run that are kept beside its histories, in `run.json`. */
export interface RunRecord {
  readonly options: Options;
  readonly version: string;
  /** Hash of the sources of Holdfast; missing for a peer and for old runs. */
  readonly code?: string;
  readonly clockSteps: boolean;
  readonly clockOffsetsMs?: readonly number[];
  readonly startMs: number;
  readonly healedMs: number;
  readonly endMs: number;
  readonly resources: readonly string[];
  readonly misbehaved: readonly string[];
  readonly journals: readonly string[];
}

type AppliedLine = Omit<AppliedWrite, "fence" | "fenceBefore"> & {
  readonly fence?: string;
  readonly fenceBefore?: string;
};

/** Reads a finished run, new or old, from the folder of its histories. */
export function readRun(folder: string): {
  readonly record: RunRecord;
  readonly history: History;
} {
  const record = recordOf(readFileSync(join(folder, "run.json"), "utf8"));
  const { startMs, healedMs, endMs, resources, misbehaved, options } = record;
  const { clockOffsetsMs = [] } = record;
  const events = record.journals
    .map((name) => join(folder, name))
    // A process that was killed during its start has not written anything.
    .filter((path) => existsSync(path))
    .flatMap((path) => readLines<ClientEvent>(path))
    .sort((a, b) => a.t - b.t);
  const faults = readLines<FaultEvent>(join(folder, "faults.jsonl"));
  const applied = readLines<AppliedLine>(join(folder, "applied.jsonl")).map((line) => {
    const { fence, fenceBefore, ...write } = line;
    if (fence === undefined || fenceBefore === undefined) return write;
    return { ...write, fence: BigInt(fence), fenceBefore: BigInt(fenceBefore) };
  });
  const { ttlMs } = options;
  const times = { ttlMs, startMs, healedMs, endMs };
  const conditions = { resources, clockOffsetsMs };
  return { record, history: { ...times, ...conditions, events, faults, applied, misbehaved } };
}

type NewOptions = "kinds" | "offsets" | "workers" | "resources";
type OldOptions = Omit<Options, NewOptions> & Partial<Options>;

/** Parses a record. Old runs could not choose these options, and all their clocks were right. */
function recordOf(text: string): RunRecord {
  const record = JSON.parse(text) as Omit<RunRecord, "options"> & { readonly options: OldOptions };
  const { kinds = faultKinds, offsets = "none", workers = 2, resources = 4 } = record.options;
  return { ...record, options: { ...record.options, kinds, offsets, workers, resources } };
}
