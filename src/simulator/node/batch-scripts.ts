import { acquire, release, touch } from "./fenced-scripts.ts";
import { plainAcquire, plainTouch } from "./plain-scripts.ts";
import { mayVote } from "./record-scripts.ts";
import type { BatchBody, ScriptBody, ScriptContext } from "./script-context.ts";

interface Operation {
  readonly code: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/**
 * `batch.lua`: as if its operations had come one after the other. The script itself reads first and
 * writes last; that it ends the same way is shown on a real server.
 */
export const batch: BatchBody = (context) => {
  const [record = "", ...keys] = context.keys;
  const head = context.args.slice(0, 4);
  const operations = operationsOf(keys, context.args.slice(4), (count) => 2 + count);
  // Looked at once and first, also where all are releases, which alone would not.
  mayVote({ ...context, keys: [record], args: head });
  return operations.map(({ code, keys, args }) => {
    if (code === "R") return release({ ...context, keys, args });
    const body = code === "A" ? acquire : touch;
    return body({ ...context, keys: [record, ...keys], args: [...head, ...args] });
  });
};

/** `plain-batch.lua` */
export const plainBatch: BatchBody = (context) => {
  const operations = operationsOf(context.keys, context.args, () => 1);
  return operations.map(({ code, keys, args }) => bodyOf(code)({ ...context, keys, args }));
};

function bodyOf(code: string): (context: ScriptContext) => string {
  const bodies: Readonly<Record<string, ScriptBody>> = {
    A: plainAcquire,
    T: plainTouch,
    R: release,
  };
  return bodies[code] ?? release;
}

/** Code, number of keys, owner; and for those that are no releases `more` arguments. */
function operationsOf(
  keys: readonly string[],
  args: readonly string[],
  more: (keyCount: number) => number,
): Operation[] {
  const operations: Operation[] = [];
  let key = 0;
  let arg = 0;
  while (arg < args.length) {
    const code = args[arg] ?? "";
    const count = Number(args[arg + 1]);
    const end = arg + 3 + (code === "R" ? 0 : more(count));
    operations.push({ code, keys: keys.slice(key, key + count), args: args.slice(arg + 2, end) });
    key += count;
    arg = end;
  }
  return operations;
}
