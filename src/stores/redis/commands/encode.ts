import { shardOf } from "./keys.ts";
import type { Mode } from "./modes.ts";
import type { Operation } from "./operation.ts";

/**
 * Returns the command that runs a script with these operations. `verify` makes the script check in
 * which process it runs. A command with the text of the script always makes it check that, because
 * the server then keeps the script, and later commands without `verify` rely on the check.
 */
export function encode(
  mode: Mode,
  operations: readonly Operation[],
  verify: boolean,
  byText = false,
): string[] {
  const own = hasOnlyReleases(operations) ? (mode.releases ?? mode) : mode;
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
  if (counterOf !== undefined) command.push(String(counterCount));
  for (const arg of own.settings) command.push(arg);
  addRuns(own, command, operations);
  return command;
}

function hasOnlyReleases(operations: readonly Operation[]): boolean {
  for (const { kind } of operations) if (kind !== "release") return false;
  return true;
}

/**
 * Adds the operations in runs. Consecutive operations of one kind form a run: they share code,
 * number of keys and TTL.
 */
function addRuns(mode: Mode, command: string[], operations: readonly Operation[]): void {
  let from = 0;
  while (from < operations.length) {
    const first = operations[from];
    if (first === undefined) return;
    const code = codeOf(first);
    const ttlMs = ttlOf(first);
    const headAt = command.length;
    command.push("", String(ttlMs));
    let next = from;
    for (let each: Operation | undefined = first; each !== undefined; each = operations[next]) {
      const isSame = each.keys.length === first.keys.length && ttlOf(each) === ttlMs;
      if (!isSame || codeOf(each) !== code) break;
      addArguments(mode, command, each);
      next += 1;
    }
    command[headAt] = `${code} ${next - from} ${first.keys.length}`;
    from = next;
  }
}

function ttlOf(operation: Operation): number {
  return operation.kind === "release" ? 0 : operation.ttlMs;
}

/**
 * Returns the code of an operation: A is an acquire, W an acquire with an entry in the queues, T a
 * touch, R a release, P a release that removes or keeps a queue entry.
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

function addArguments(mode: Mode, command: string[], operation: Operation): void {
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

/**
 * Returns `SET key owner NX GET PX ttl` for one lock without a fence and a caller that does not
 * wait. Returns undefined for other operations.
 */
export function encodeSet(mode: Mode, operation: Operation): readonly string[] | undefined {
  if (mode.fences || operation.kind !== "acquire" || operation.place !== undefined)
    return undefined;
  const [key, ...others] = operation.keys;
  if (key === undefined || others.length > 0) return undefined;
  return ["SET", key, operation.owner, "NX", "GET", "PX", String(operation.ttlMs)];
}

/**
 * Divisor that splits a fence into whole seconds and the rest: fences of one second share the
 * seconds.
 */
const tail = 1_000_000;

let lastHead = 0;
let lastText = "0";

/**
 * Returns a fence in digits. Engines format numbers of this size slowly, and renewals need very
 * many of them. Most have the same first digits, whose text is cached.
 */
export function fenceText(fence: number): string {
  if (fence < tail) return String(fence);
  const head = Math.floor(fence / tail);
  if (head !== lastHead) {
    lastHead = head;
    lastText = String(head);
  }
  // Adds a leading 1 to the rest and cuts it off again, so that no leading zero is lost.
  return lastText + String(tail + (fence - head * tail)).slice(1);
}
