import type { Script } from "../scripts/generated.ts";
import { fenceText } from "./fence-text.ts";
import type { Operation } from "./operation.ts";
import { shardOf } from "./shards.ts";

/** How operations become the keys and arguments of one script. */
export interface Encoding {
  readonly script: Script;
  /** A lock's value is "owner|fence", otherwise the owner. */
  readonly fences: boolean;
  /** Key of the node record, and what the script compares with it. It has the counters, too. */
  readonly record: { readonly key: string; readonly deployment: readonly string[] } | undefined;
  /** Each call of the script checks which process it runs in. */
  readonly strict: boolean;
  /** Key of a lock's counter, if these are keys of their own. */
  readonly counterOf: ((key: string) => string) | undefined;
  readonly queueOf: (key: string) => string;
  /** Arguments between the number of locks and the operations. */
  readonly head: (counterCount: number) => readonly string[];
  /** For releases alone, which need neither fences nor a record. Left out if it is the same. */
  readonly releases?: Encoding | undefined;
}

/**
 * Returns the call of a script that runs these operations. `verify` makes it check which process it
 * runs in. A text enters the server's script cache, and so always verifies.
 */
export function encode(
  mode: Encoding,
  operations: readonly Operation[],
  verify: boolean,
  byText = false,
): string[] {
  const own = operations.some(({ kind }) => kind !== "release") ? mode : (mode.releases ?? mode);
  const { script, record, counterOf, queueOf, strict } = own;
  const command = byText ? ["EVAL", script.source, ""] : ["EVALSHA", script.sha, ""];
  if (record !== undefined) command.push(record.key);
  const locksAt = command.length;
  for (const { keys } of operations) for (const key of keys) command.push(key);
  const lockCount = command.length - locksAt;
  if (counterOf !== undefined) {
    for (const { kind, keys } of operations) {
      if (kind !== "release") for (const key of keys) command.push(counterOf(key));
    }
  }
  const counterCount = command.length - locksAt - lockCount;
  for (const { kind, keys } of operations) {
    if (kind !== "touch") for (const key of keys) command.push(queueOf(key));
  }
  command[2] = String(command.length - 3);
  if (record !== undefined) {
    command.push(verify || strict ? "1" : "0");
    for (const arg of record.deployment) command.push(arg);
  }
  command.push(String(lockCount));
  for (const arg of own.head(counterCount)) command.push(arg);
  addRuns(own, command, operations);
  return command;
}

/** Operations of one kind that follow one another share what they have in common. */
function addRuns(mode: Encoding, command: string[], operations: readonly Operation[]): void {
  let [code, locks, ttlMs, count, countAt] = ["", 0, 0, 0, 0];
  for (const operation of operations) {
    const own = codeOf(operation);
    const ownTtlMs = operation.kind === "release" ? 0 : operation.ttlMs;
    if (own !== code || operation.keys.length !== locks || ownTtlMs !== ttlMs || count === 0) {
      if (count > 0) command[countAt] = `${code} ${count} ${locks}`;
      [code, locks, ttlMs, count, countAt] = [
        own,
        operation.keys.length,
        ownTtlMs,
        0,
        command.length,
      ];
      command.push("", String(ttlMs));
    }
    count += 1;
    addArguments(mode, command, operation);
  }
  command[countAt] = `${code} ${count} ${locks}`;
}

/**
 * A acquires, W acquires with an entry in the queues, T touches, R releases, P releases and gives
 * up or keeps an entry.
 */
function codeOf(operation: Operation): string {
  switch (operation.kind) {
    case "acquire":
      return operation.place === undefined ? "A" : "W";
    case "touch":
      return "T";
    default:
      return operation.left === "" ? "R" : "P";
  }
}

function addArguments(mode: Encoding, command: string[], operation: Operation): void {
  const { kind, owner, fence, keys } = operation;
  if (kind === "release") {
    command.push(fence === 0 ? owner : `${owner}|${fenceText(fence)}`);
    if (operation.left !== "") command.push(operation.left);
    return;
  }
  if (!mode.fences) command.push(owner);
  else if (kind === "acquire") command.push(owner, fenceText(fence));
  else command.push(`${owner}|${fenceText(fence)}`);
  if (mode.record !== undefined) for (const key of keys) command.push(String(shardOf(key)));
  if (kind !== "acquire" || operation.place === undefined) return;
  const { ticket, id, tenures } = operation.place;
  command.push(String(ticket), id, String(tenures));
}

/** `SET key owner NX GET PX ttl`: one lock without a fence, for a caller that does not wait. */
export function encodeSet(mode: Encoding, operation: Operation): readonly string[] | undefined {
  if (mode.fences || operation.kind !== "acquire" || operation.place !== undefined)
    return undefined;
  const [key, ...others] = operation.keys;
  if (key === undefined || others.length > 0) return undefined;
  return ["SET", key, operation.owner, "NX", "GET", "PX", String(operation.ttlMs)];
}
