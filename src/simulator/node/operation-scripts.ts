import { run, type ScriptOperation, type View } from "./engine.ts";
import { Queues } from "./queues.ts";
import { mayVote } from "./record-scripts.ts";
import { atOf, numberOr0, placeOf, type ScriptBody } from "./script-context.ts";

/** Keys and arguments of a script from which its operations are decoded. */
interface Parts {
  readonly locks: readonly string[];
  readonly queues: readonly string[];
  /**
   * Keys of the fence counters. Undefined if the counters are fields of the node record (`args`
   * then contains their names), or if there are no fences.
   */
  readonly counters?: readonly string[];
  readonly args: readonly string[];
  readonly hasFences: boolean;
}

/**
 * Works like `fenced.lua`: runs its operations one after the other, then notifies the first waiter
 * of each queue. The Lua script has faster paths for common cases. A test on a real server shows
 * that these paths give the same results as this code.
 */
export const fenced: ScriptBody = (context) => {
  const { data, keys, args } = context;
  const [record = "", ...rest] = keys;
  const [, admission, , ownMax = ""] = args;
  const lockCount = Number(args[4]);
  const { refusal, rid } = mayVote(context);
  const max = data.hash(record)?.get("max") ?? (admission === "strict" ? ownMax : undefined);
  const readCounter = (shard: string): number => numberOr0(data.hash(record)?.get(shard));
  const view = {
    context,
    queues: new Queues(context),
    fences: true,
    refusal,
    ttlMaxMs: max === undefined ? Infinity : Number(max),
    floor: numberOr0(data.hash(record)?.get("floor")),
    readCounter,
    raiseCounters(shards: readonly string[], fence: string, isBehind: boolean): void {
      const below = shards.filter((shard) => isBehind && readCounter(shard) < Number(fence));
      const pairs = below.flatMap((shard) => [shard, fence]);
      if (pairs.length > 0) data.hset(record, pairs);
    },
  };
  const locks = rest.slice(0, lockCount);
  const queues = rest.slice(lockCount);
  const operations = operationsOf({ locks, queues, args: args.slice(5), hasFences: true });
  return runAll(view, operations, `S ${atOf(context)} ${rid}`);
};

/** Works like `plain.lua`. */
export const plain: ScriptBody = (context) => {
  const { keys, args } = context;
  const lockCount = Number(args[0]);
  const locks = keys.slice(0, lockCount);
  const queues = keys.slice(lockCount);
  const operations = operationsOf({ locks, queues, args: args.slice(2), hasFences: false });
  const view = {
    context,
    queues: new Queues(context, args[1] === "cluster"),
    fences: false,
    refusal: undefined,
    ttlMaxMs: Infinity,
    floor: 0,
    readCounter: () => 0,
    raiseCounters: () => undefined,
  };
  return runAll(view, operations, /^[AWT]/.test(args[2] ?? "") ? `S ${atOf(context)} -` : "-");
};

/** Works like `cluster.lua`. */
export const cluster: ScriptBody = (context) => {
  const { data, keys, args } = context;
  const [lockCount = 0, counterCount = 0, retentionMs = 0] = args.slice(0, 3).map(Number);
  const readCounter = (key: string): number => numberOr0(data.get(key));
  const view = {
    context,
    queues: new Queues(context, true),
    fences: true,
    refusal: undefined,
    ttlMaxMs: Infinity,
    floor: 0,
    readCounter,
    raiseCounters(counters: readonly string[], fence: string): void {
      for (const key of counters) {
        data.set(key, String(Math.max(readCounter(key), Number(fence))), retentionMs);
      }
    },
  };
  const operations = operationsOf({
    locks: keys.slice(0, lockCount),
    counters: keys.slice(lockCount, lockCount + counterCount),
    queues: keys.slice(lockCount + counterCount),
    args: args.slice(3),
    hasFences: true,
  });
  return runAll(view, operations, `S ${atOf(context)} -`);
};

function runAll(view: View, operations: readonly ScriptOperation[], stamp: string): string {
  const { context, queues } = view;
  const lines = operations.map((operation) => run(operation, view));
  queues.notifyHeads((lock) => context.data.textOf(lock) === undefined);
  return [stamp, ...lines].join("\n");
}

/**
 * Decodes operations in the format of `_list.lua`. For operations of one kind, the arguments are
 * the heading "code count locks", the TTL, and then the arguments of each operation.
 */
function operationsOf({ locks, queues, counters, args, hasFences }: Parts): ScriptOperation[] {
  const operations: ScriptOperation[] = [];
  const [lock, queue, counter, arg] = [
    takerOf(locks),
    takerOf(queues),
    takerOf(counters),
    takerOf(args),
  ];
  while (arg.isLeft()) {
    const [heading = "", ttl] = arg.next(2);
    const [code = "", count, size] = heading.split(" ");
    const isRelease = code === "R" || code === "P";
    const isAcquire = code === "A" || code === "W";
    for (let left = Number(count); left > 0; left -= 1) {
      const [value = ""] = arg.next(1);
      const [given = ""] = arg.next(code === "P" ? 1 : 0);
      const [proposal = ""] = arg.next(hasFences && isAcquire ? 1 : 0);
      const own = hasFences && !isRelease ? Number(size) : 0;
      const [ownCounters, place] = [
        (counters === undefined ? arg : counter).next(own),
        arg.next(code === "W" ? 3 : 0),
      ];
      operations.push({
        code,
        ttlMs: Number(ttl),
        locks: lock.next(Number(size)),
        queues: queue.next(code === "T" ? 0 : Number(size)),
        counters: ownCounters,
        value,
        proposal,
        place: place.length === 0 ? undefined : placeOf(place),
        left: given,
      });
    }
  }
  return operations;
}

interface Taker {
  isLeft(): boolean;
  next(count: number): readonly string[];
}

function takerOf(words: readonly string[] = []): Taker {
  let at = 0;
  return {
    isLeft: () => at < words.length,
    next(count) {
      at += count;
      return words.slice(at - count, at);
    },
  };
}
