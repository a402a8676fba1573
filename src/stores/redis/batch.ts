import type { Script } from "./scripts/generated.ts";

/** One operation as the batch scripts take it. */
export interface BatchPart {
  /** A acquires, W acquires with a place in the queue, T touches, R releases. */
  readonly code: "A" | "W" | "T" | "R";
  readonly keys: readonly string[];
  /** The queue of each key; none for a touch, which neither grants nor frees. */
  readonly queues: readonly string[];
  /** Owner first, then what the dialect's script needs. */
  readonly args: readonly string[];
}

/** Which script runs several operations in one call, and what comes before them. */
export interface Batching {
  readonly script: Script;
  /** The node record, where the dialect has one. */
  readonly recordKey: string | undefined;
  /** Told before the operations, after the verify flag. */
  readonly head: readonly string[];
  /** Each call looks which process it runs in. */
  readonly strict: boolean;
}

/** Beyond this a batch holds the server up, and everybody else's commands with it. */
export const batchSizeMax = 16;
export const batchKeysMax = 64;

export interface BatchCall {
  readonly key: string;
  first(verify: boolean): readonly string[];
  /** The text of the script itself, for a server that lacks it. */
  whole(): readonly string[];
}

/** Many operations in one script call; each keeps its own verdict. */
export function batchCall(batching: Batching, parts: readonly BatchPart[]): BatchCall {
  const { script, recordKey, head, strict } = batching;
  const keys: string[] = recordKey === undefined ? [] : [recordKey];
  for (const part of parts) keys.push(...part.keys, ...part.queues);
  const command = (name: string, text: string, verify: boolean): string[] => {
    const built = [name, text, String(keys.length), ...keys];
    if (recordKey !== undefined) built.push(verify || strict ? "1" : "0");
    built.push(...head);
    for (const part of parts) built.push(part.code, String(part.keys.length), ...part.args);
    return built;
  };
  return {
    key: keys[0] ?? "",
    first: (verify) => command("EVALSHA", script.sha, verify),
    whole: () => command("EVAL", script.source, true),
  };
}
