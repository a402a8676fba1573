import { faultKinds, isFaultKind, type FaultKind } from "./kinds.ts";

export const lockNames = [
  "holdfast",
  // Shows the effect of strict admission; measured like a peer.
  "holdfast-without-admission",
  "redlock5",
  "redis-semaphore",
  "redlock-universal",
] as const;
export type LockName = (typeof lockNames)[number];

export interface Options {
  readonly lock: LockName;
  readonly seconds: number;
  readonly seed: number;
  readonly nodes: number;
  readonly clients: number;
  /** Number of concurrent calls of a client process. */
  readonly workers: number;
  readonly resources: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** Kinds of faults to draw from. */
  readonly kinds: readonly FaultKind[];
  /** "drawn" if wall clocks of client processes are wrong for the whole run. */
  readonly offsets: "drawn" | "none";
  /** Settings of the Redis clients of the nodes: the defaults, or short time limits. */
  readonly connections: "plain" | "tuned";
  /** Folder of the report. Without it no report is written. */
  readonly out: string | undefined;
  readonly name: string | undefined;
  /**
   * Folder of the histories. By default a temporary folder, which is removed unless the run
   * failed.
   */
  readonly keep: string | undefined;
  /** Kept histories of an earlier run, which are checked again instead of a new run. */
  readonly check: string | undefined;
}

const usage = `npm run faults -- [options]
  --minutes n | --seconds n   how long faults go on (5 minutes)
  --seed n                    draws the faults; printed first, a random one when left out
  --lock name                 ${lockNames.join(" | ")}
  --nodes n                   Redis servers (5); with 1, Holdfast uses redis() and not redlock()
  --clients n                 client processes (5)
  --workers n                 calls that a client has under way at once (2)
  --resources n               different locks (4)
  --ttl ms, --wait ms         of every lock (2000, 3000)
  --kinds kind,kind           only these kinds of faults (all of them):
${listed(faultKinds)}
  --offsets drawn|none        whether wall clocks of clients are wrong all the time (drawn)
  --connections plain|tuned   Redis clients as they come, or with time limits for every command
  --out folder                where the report goes (docs/evidence); "none" for nowhere
  --name text                 name of the report's files
  --keep folder               keeps the histories there
  --check folder              checks histories that were kept, and runs nothing`;

export class UsageError extends Error {}

export function readOptions(args: readonly string[]): Options {
  const given = new Map<string, string>();
  for (let index = 0; index < args.length; index += 2) {
    const name = args[index] ?? "";
    const value = args[index + 1];
    if (!name.startsWith("--") || value === undefined || !usage.includes(`${name} `)) {
      throw new UsageError(usage);
    }
    given.set(name.slice(2), value);
  }
  const lock = lockNames.find((name) => name === (given.get("lock") ?? "holdfast"));
  if (lock === undefined) throw new UsageError(usage);
  const connections = given.get("connections") ?? (isHoldfast(lock) ? "plain" : "tuned");
  if (connections !== "plain" && connections !== "tuned") throw new UsageError(usage);
  const offsets = given.get("offsets") ?? "drawn";
  if (offsets !== "drawn" && offsets !== "none") throw new UsageError(usage);
  const out = given.get("out") ?? "docs/evidence";
  const minutes = number(given, "minutes", 5, 0.01, 24 * 60);
  return {
    lock,
    seconds: number(given, "seconds", minutes * 60, 1, 24 * 3_600),
    seed: number(given, "seed", Math.floor(Math.random() * 1e9), 0, Number.MAX_SAFE_INTEGER),
    nodes: number(given, "nodes", 5, isHoldfast(lock) ? 1 : 3, 9),
    clients: number(given, "clients", 5, 2, 12),
    workers: number(given, "workers", 2, 1, 50),
    resources: number(given, "resources", 4, 1, 1_000),
    ttlMs: number(given, "ttl", 2_000, 200, 30_000),
    waitMs: number(given, "wait", 3_000, 0, 60_000),
    kinds: kindsOf(given.get("kinds")),
    offsets,
    connections,
    out: out === "none" ? undefined : out,
    name: given.get("name"),
    keep: given.get("keep"),
    check: given.get("check"),
  };
}

function kindsOf(text: string | undefined): readonly FaultKind[] {
  if (text === undefined) return faultKinds;
  const names = text.split(",");
  const kinds = names.filter(isFaultKind);
  if (kinds.length === names.length) return kinds;
  const unknown = names.filter((name) => !isFaultKind(name));
  throw new UsageError(`--kinds: there is no kind ${unknown.join(", ")}\n\n${usage}`);
}

/** Returns the names in lines that fit below their option. */
function listed(names: readonly string[]): string {
  const indent = " ".repeat(30);
  const lines = [""];
  for (const name of names) {
    const line = lines.at(-1) ?? "";
    if (line.length + name.length > 60) lines.push(name);
    else lines[lines.length - 1] = line === "" ? name : `${line}, ${name}`;
  }
  return lines.map((line) => indent + line).join("\n");
}

export function isHoldfast(lock: LockName): boolean {
  return lock.startsWith("holdfast");
}

function number(
  given: ReadonlyMap<string, string>,
  name: string,
  fallback: number,
  min: number,
  max: number,
): number {
  const text = given.get(name);
  const value = text === undefined ? fallback : Number(text);
  if (Number.isFinite(value) && value >= min && value <= max) return value;
  throw new UsageError(`--${name}: from ${min} to ${max}\n\n${usage}`);
}
