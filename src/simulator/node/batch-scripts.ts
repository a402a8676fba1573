import { acquireIn, touch } from "./fenced-scripts.ts";
import { plainAcquireIn, plainTouch } from "./plain-scripts.ts";
import { Queues } from "./queues.ts";
import { mayVote } from "./record-scripts.ts";
import type { BatchBody, PlaceAsked, ScriptContext } from "./script-context.ts";
import { locksOf, releaseIn } from "./waiting-scripts.ts";

interface Operation {
  readonly code: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly place: PlaceAsked | undefined;
}

/**
 * `batch.lua`: as if its operations had come one after the other, but for the queues, whose heads
 * are told in the end. That the script itself, which reads first and writes last, ends the same way
 * is shown on a real server.
 */
export const batch: BatchBody = (context) => {
  const [record = "", ...keys] = context.keys;
  const head = context.args.slice(0, 4);
  const operations = operationsOf(keys, context.args.slice(4), (count) => 2 + count);
  // Looked at once and first, also where all are releases, which alone would not.
  mayVote({ ...context, keys: [record], args: head });
  return run(context, operations, ({ code, keys, args, place }, queues) => {
    const own = { ...context, keys: [record, ...keys], args: [...head, ...args] };
    return code === "T" ? touch(own) : acquireIn(own, queues, place);
  });
};

/** `plain-batch.lua` */
export const plainBatch: BatchBody = (context) => {
  const operations = operationsOf(context.keys, context.args, () => 1);
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
    if (code === "R") return releaseIn({ ...context, keys, args }, queues, locksOf(keys));
    return verdict(operation, queues);
  });
  queues.finish((lock) => context.data.textOf(lock) === undefined);
  return replies;
}

/** Code, number of locks, owner; the place for a release, else `more` and perhaps a place. */
function operationsOf(
  keys: readonly string[],
  args: readonly string[],
  more: (lockCount: number) => number,
): Operation[] {
  const operations: Operation[] = [];
  let key = 0;
  let arg = 0;
  while (arg < args.length) {
    const code = args[arg] ?? "";
    const locks = Number(args[arg + 1]);
    const keyEnd = key + (code === "T" ? locks : 2 * locks);
    const end = arg + 3 + (code === "R" ? 1 : more(locks));
    const [ticket, id = ""] = args.slice(end, end + 2);
    operations.push({
      code,
      keys: keys.slice(key, keyEnd),
      args: args.slice(arg + 2, end),
      place: code === "W" ? { ticket: Number(ticket), id } : undefined,
    });
    key = keyEnd;
    arg = code === "W" ? end + 2 : end;
  }
  return operations;
}
