export const lockNames = [
  "holdfast",
  // Shows what strict admission is for; measured like a peer.
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
  readonly ttlMs: number;
  readonly waitMs: number;
  /** How the Redis clients of the nodes are set up: as they come, or with short time limits. */
  readonly connections: "plain" | "tuned";
  /** Where the report goes; none is written without it. */
  readonly out: string | undefined;
  readonly name: string | undefined;
  /** Where the histories go; a temporary folder, removed unless something went wrong. */
  readonly keep: string | undefined;
  /** The kept histories of an earlier run, to be checked again instead of a new run. */
  readonly check: string | undefined;
}

const usage = `npm run faults -- [options]
  --minutes n | --seconds n   how long faults go on (5 minutes)
  --seed n                    draws the faults; printed first, a random one when left out
  --lock name                 ${lockNames.join(" | ")}
  --nodes n                   Redis servers (5)
  --clients n                 client processes (5)
  --ttl ms, --wait ms         of every lock (2000, 3000)
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
  const out = given.get("out") ?? "docs/evidence";
  const minutes = number(given, "minutes", 5, 0.01, 24 * 60);
  return {
    lock,
    seconds: number(given, "seconds", minutes * 60, 1, 24 * 3_600),
    seed: number(given, "seed", Math.floor(Math.random() * 1e9), 0, Number.MAX_SAFE_INTEGER),
    nodes: number(given, "nodes", 5, 3, 9),
    clients: number(given, "clients", 5, 2, 12),
    ttlMs: number(given, "ttl", 2_000, 200, 30_000),
    waitMs: number(given, "wait", 3_000, 0, 60_000),
    connections,
    out: out === "none" ? undefined : out,
    name: given.get("name"),
    keep: given.get("keep"),
    check: given.get("check"),
  };
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
