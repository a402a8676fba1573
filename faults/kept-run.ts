import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readLines, type AppliedWrite, type ClientEvent } from "./history.ts";
import type { FaultEvent, History } from "./history.ts";
import type { Options } from "./options.ts";

/** What is kept of a run beside its histories, in `run.json`. */
export interface RunRecord {
  readonly options: Options;
  readonly version: string;
  /** Which sources of Holdfast it was; unknown for a peer and for runs of long ago. */
  readonly code?: string;
  readonly clockSteps: boolean;
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

/** Reads a finished run, just now or from long ago, out of the folder of its histories. */
export function readRun(folder: string): {
  readonly record: RunRecord;
  readonly history: History;
} {
  const record = JSON.parse(readFileSync(join(folder, "run.json"), "utf8")) as RunRecord;
  const { startMs, healedMs, endMs, resources, misbehaved, options } = record;
  const events = record.journals
    .map((name) => join(folder, name))
    // A process that was killed before it had come up has not written anything.
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
  return { record, history: { ...times, resources, events, faults, applied, misbehaved } };
}
