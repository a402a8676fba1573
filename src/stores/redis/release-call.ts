import type { Batching } from "./batch.ts";
import { queueKeyOf, type PlaceLeft } from "./dialect.ts";
import { LonePartCall } from "./lone-part-call.ts";
import { ScriptCall, type NodeCall } from "./node-call.ts";
import { readRelease, type ReleaseReply } from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

/** Giving back needs neither a fence nor a record: it is safe on a node that may not vote. */
export function releaseCall(
  batching: Batching,
  keys: readonly string[],
  owner: string,
  place: PlaceLeft = "",
): NodeCall<ReleaseReply> {
  const queues = keys.map(queueKeyOf);
  const part = { code: "R", keys, queues, args: [owner, place] } as const;
  if (place !== "") return new LonePartCall(batching, part, readRelease);
  const options = { read: readRelease, part };
  return new ScriptCall(scripts.release, [...keys, ...queues], [owner], options);
}
