import type { Batching } from "./batch.ts";
import { queueKeyOf, type PlaceLeft } from "./dialect.ts";
import { LonePartCall } from "./lone-part-call.ts";
import { ScriptCall, type NodeCall } from "./node-call.ts";
import { readRelease, type ReleaseReply } from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

const releaseForm = {
  script: scripts.release,
  read: readRelease,
  code: "R",
  queueOf: queueKeyOf,
} as const;

/** Giving back needs neither a fence nor a record: it is safe on a node that may not vote. */
export function releaseCall(
  batching: Batching,
  keys: readonly string[],
  owner: string,
  place: PlaceLeft = "",
): NodeCall<ReleaseReply> {
  const args = [owner, place];
  if (place === "") return new ScriptCall(releaseForm, keys, args);
  const part = { code: "R", keys, queueOf: queueKeyOf, args } as const;
  return new LonePartCall(batching, part, readRelease);
}
