import { acquireIn, touch } from "./fenced-scripts.ts";
import { plainAcquireIn, plainTouch } from "./plain-scripts.ts";
import { Queues } from "./queues.ts";
import { mayVote } from "./record-scripts.ts";
import {
  atOf,
  placeOf,
  type BatchBody,
  type PlaceAsked,
  type ScriptContext,
} from "./script-context.ts";
import { locksOf, releaseIn } from "./waiting-scripts.ts";

interface Operation {
  readonly code: string;
  /** Lock keys, and behind them their queues, but for a touch. */
  readonly keys: readonly string[];
  /** As the script for one of them takes them. */
  readonly args: readonly string[];
  readonly place: PlaceAsked | undefined;
}

/**
 * `batch.lua`: as if its operations had come one after the other, but for the queues, whose heads
 * are notified in the end. That the script itself, which reads first and writes last, ends the same
 * way is shown on a real server.
 */
export const batch: BatchBody = (context) => {
  const [record = "", ...keys] = context.keys;
  const head = context.args.slice(0, 4);
  const operations = operationsOf(keys, context.args.slice(4), 3, (count) => 2 + count);
  // Looked at once and first, also where all are releases, which alone would not.
  const { rid } = mayVote({ ...context, keys: [record], args: head });
  const replies = run(context, operations, ({ code, keys, args, place }, queues) => {
    const own = { ...context, keys: [record, ...keys], args: [...head, ...args] };
    if (code === "T") return touch(own).replace(/^K .*/, "K");
    return shortened(acquireIn(own, queues, place), args[2]);
  });
  return [`S ${atOf(context)} ${rid === "" ? "-" : rid}`, ...replies];
};

/** Where all is well, process and time are told once for all, and a proposal is not said again. */
function shortened(reply: string, proposal: string | undefined): string {
  if (!reply.startsWith("G ")) return reply;
  const fence = reply.split(" ")[4] ?? "-";
  return fence === proposal ? "G" : `G ${fence}`;
}

/** `plain-batch.lua` */
export const plainBatch: BatchBody = (context) => {
  const operations = operationsOf(context.keys, context.args, 2, () => 1);
  return run(context, operations, ({ code, keys, args, place }, queues) => {
    const own = { ...context, keys, args };
    return code === "T" ? plainTouch(own) : plainAcquireIn(own, queues, place);
  });
};

function run(
  context: ScriptContext,
  operations: readonly Operation[],
  verdict: (operation: Operation, queues: Queues) => string,
): string[] {
  const queues = new Queues(context);
  const replies = operations.map((operation) => {
    const { code, keys, args } = operation;
    if (code === "R" || code === "P") {
      return releaseIn({ ...context, keys, args }, queues, locksOf(keys));
    }
    return verdict(operation, queues);
  });
  queues.notifyHeads((lock) => context.data.textOf(lock) === undefined);
  return replies;
}

/**
 * How many lock keys there are in all, then runs: code, operations, locks of each, TTL, and for
 * each its arguments without the TTL.
 */
function operationsOf(
  keys: readonly string[],
  args: readonly string[],
  placeArgs: number,
  ownArgs: (lockCount: number) => number,
): Operation[] {
  const operations: Operation[] = [];
  let lock = 0;
  let queue = Number(args[0]);
  let arg = 1;
  while (arg < args.length) {
    const [code = "", count, locks, ttl = ""] = args.slice(arg, arg + 4);
    const lockCount = Number(locks);
    const isRelease = code === "R" || code === "P";
    const size = code === "R" ? 1 : code === "P" ? 2 : ownArgs(lockCount);
    arg += 4;
    for (let left = Number(count); left > 0; left -= 1) {
      const [owner = "", ...more] = args.slice(arg, arg + size);
      arg += size;
      const queueCount = code === "T" ? 0 : lockCount;
      const place = code === "W" ? args.slice(arg, arg + placeArgs) : undefined;
      arg += place?.length ?? 0;
      operations.push({
        code,
        keys: [...keys.slice(lock, lock + lockCount), ...keys.slice(queue, queue + queueCount)],
        args: isRelease ? [owner, ...more] : [owner, ttl, ...more],
        place: place && placeOf(place),
      });
      lock += lockCount;
      queue += queueCount;
    }
  }
  return operations;
}
