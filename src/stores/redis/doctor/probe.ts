import { nodeRecordKey } from "../fenced-dialect.ts";
import { ScriptCall, type NodeCall } from "../node-call.ts";
import type { ResolvedStoreOptions } from "../options.ts";
import { unexpected } from "../replies.ts";
import * as scripts from "../scripts/generated.ts";

/** What one call of the doctor's script finds out. */
export interface Probe {
  /** By the server's clock; undefined where it may not be read. */
  readonly serverMs: number | undefined;
  /** Needed commands that this user may not run; undefined where the server cannot tell. */
  readonly denied: readonly string[] | undefined;
  /** What a write is answered with, where it is refused. */
  readonly writeRefusal: string | undefined;
  readonly record: ProbedRecord;
}

/** The node record as it is kept, belonging to the running process or not. */
export interface ProbedRecord {
  readonly runId: string | undefined;
  readonly state: string | undefined;
  readonly everAdmitted: boolean;
  readonly mode: string | undefined;
  readonly format: string | undefined;
  readonly ttlMaxMs: number | undefined;
}

/**
 * What a client runs on its own, and what its scripts run; @1 is a lock, @2 the node record. Each
 * has to be well formed: Redis 7.0 crashes when asked about an EVAL that is cut short.
 */
const always = ["EVALSHA x 0", "EVAL x 0"];
const onLocks = ["GET @1", "SET @1 x", "PTTL @1", "PEXPIRE @1 1", "DEL @1"];
const onRecord = ["HMGET @2 x", "HGET @2 x", "HGETALL @2", "HSET @2 x 1", "HDEL @2 x"];

/** Every command that a user of these options has to be allowed, INFO apart. */
export function neededCommands(
  options: Pick<ResolvedStoreOptions, "fencing"> & Partial<Pick<ResolvedStoreOptions, "replicas">>,
  cluster: boolean,
): readonly string[] {
  const calls = options.replicas === undefined ? always : [...always, "WAIT 1 1"];
  const locks = cluster ? onLocks : [...onLocks, "MGET @1"];
  if (!options.fencing) return [...calls, ...locks];
  return cluster ? [...calls, "TIME", ...locks] : [...calls, "TIME", ...locks, ...onRecord];
}

/** A name that no lock has, in the place where locks are. */
export function probeKey(options: ResolvedStoreOptions): string {
  return `${options.prefix}holdfast:probe`;
}

export function probeCall(options: ResolvedStoreOptions, cluster: boolean): NodeCall<Probe> {
  const keys = [probeKey(options)];
  if (options.fencing && !cluster) keys.push(nodeRecordKey);
  return new ScriptCall(scripts.probe, keys, neededCommands(options, cluster), { read: readProbe });
}

/** Four lines: "D sec usec", the denied, a refusal, the record. */
export function readProbe(text: string): Probe {
  const [clock = "", denied = "", refusal = "", record = ""] = text.split("\n");
  const [kind, seconds, micros] = clock.split(" ");
  if (kind !== "D") throw unexpected(text);
  const names = denied.split(" ").filter((name) => name !== "");
  const [rid, state, , ever, mode, format, max] = record
    .split(" ")
    .map((word) => (word === "-" ? undefined : word));
  return {
    serverMs: seconds === "-" ? undefined : Number(seconds) * 1_000 + Number(micros) / 1_000,
    denied: names.includes("?") ? undefined : names,
    writeRefusal: refusal === "" ? undefined : refusal,
    record: {
      runId: rid,
      state,
      everAdmitted: ever === "1",
      mode,
      format,
      ttlMaxMs: max === undefined ? undefined : Number(max),
    },
  };
}
