import * as scripts from "../scripts/generated.ts";

/**
 * For each script that runs operations: the index of the argument with the number of all locks, and
 * the index of the argument with which the first run (operations of one kind) begins.
 */
const places = new Map(
  (
    [
      [scripts.fenced, { locks: 4, operations: 5 }],
      [scripts.plain, { locks: 0, operations: 2 }],
      [scripts.cluster, { locks: 0, operations: 3 }],
    ] as const
  ).flatMap(([{ sha, source }, place]) => [
    [sha, place],
    [source, place],
  ]),
);

/** SHA-1s and texts of the scripts that only read. */
const readers = new Set(
  [scripts.inspect, scripts.probe, scripts.nodeRecord].flatMap(({ sha, source }) => [sha, source]),
);

/**
 * True if replicas have to confirm the command. False if it only reads, releases, or proves grants
 * without extending them.
 */
export function needsReplicas(command: readonly string[]): boolean {
  const [name = "", script = "", keyCount = "0"] = command;
  if (name === "SET") return true;
  if (name !== "EVALSHA" && name !== "EVAL") return false;
  const place = places.get(script);
  if (place === undefined) return !readers.has(script);
  const args = 3 + Number(keyCount);
  const [code, count, locks] = (command[args + place.operations] ?? "").split(" ");
  // Not all operations of the list belong to the first run, so some of them may be writes.
  if (Number(count) * Number(locks) !== Number(command[args + place.locks])) return true;
  if (code === "T") return command[args + place.operations + 1] !== "0";
  return code !== "R" && code !== "P";
}

const confirmation = /^[GK]( \d+)?$/;

/** True if a reply confirms a grant or an extension. */
export function confirmsWrite(reply: unknown): boolean {
  return typeof reply === "string" && reply.split("\n").some((line) => confirmation.test(line));
}

/** Returns the reply with `refusal` in place of each line that confirms a grant or an extension. */
export function withoutConfirmations(reply: unknown, refusal: string): unknown {
  if (typeof reply !== "string") return reply;
  return reply
    .split("\n")
    .map((line) => (confirmation.test(line) ? refusal : line))
    .join("\n");
}
