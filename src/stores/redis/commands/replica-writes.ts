import * as scripts from "../scripts/generated.ts";

/** Index of the number of locks among the arguments of a script, and of the first operations. */
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

/** Scripts that only read. */
const readers = new Set(
  [scripts.inspect, scripts.probe, scripts.nodeRecord].flatMap(({ sha, source }) => [sha, source]),
);

/**
 * True unless the command is known to need no replicas: it reads, it releases, or it proves grants
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
  // Different operations, or of different size.
  if (Number(count) * Number(locks) !== Number(command[args + place.locks])) return true;
  if (code === "T") return command[args + place.operations + 1] !== "0";
  return code !== "R" && code !== "P";
}

const confirmation = /^[GK]( \d+)?$/;

/** True if a reply confirms a grant or an extension. */
export function confirmsWrite(reply: unknown): boolean {
  return typeof reply === "string" && reply.split("\n").some((line) => confirmation.test(line));
}

/** Returns the same reply, with the refusal in place of every confirmation. */
export function withoutConfirmations(reply: unknown, refusal: string): unknown {
  if (typeof reply !== "string") return reply;
  return reply
    .split("\n")
    .map((line) => (confirmation.test(line) ? refusal : line))
    .join("\n");
}
