import type { Batching } from "./batch.ts";
import { queueKeyOf, type PlaceLeft } from "./dialect.ts";
import { LonePartCall } from "./lone-part-call.ts";
import { ScriptCall, type NodeCall } from "./node-call.ts";
import { readRelease, releaseAfterResend, type ReleaseReply } from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

const releaseForm = {
  script: scripts.release,
  read: readRelease,
  code: "R",
  queueOf: queueKeyOf,
  afterResend: releaseAfterResend,
} as const;

/**
 * Giving back needs neither a fence nor a record: it is safe on a node that may not vote. `value`
 * is what should stand there, or only the owner, whose keys go whatever their fence.
 */
export function releaseCall(
  batching: Batching,
  keys: readonly string[],
  value: string,
  place: PlaceLeft = "",
): NodeCall<ReleaseReply> {
  if (place === "") return new ScriptCall(releaseForm, keys, [value]);
  const part = { code: "P", keys, queueOf: queueKeyOf, args: [value, place] } as const;
  return new LonePartCall(batching, part, readRelease, releaseAfterResend);
}
