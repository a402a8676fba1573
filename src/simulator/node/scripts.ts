import * as lua from "../../stores/redis/scripts/generated.ts";
import { batch, plainBatch } from "./batch-scripts.ts";
import { clusterAcquire, clusterRelease, clusterTouch } from "./cluster-scripts.ts";
import { breakForeign } from "./lock-values.ts";
import { acquire, inspect, release, touch } from "./fenced-scripts.ts";
import { plainAcquire, plainTouch } from "./plain-scripts.ts";
import { admit, nodeRecord } from "./record-scripts.ts";
import { plainRenew, renew } from "./renew-scripts.ts";
import type { BatchBody, ScriptBody } from "./script-context.ts";

export interface KnownScript {
  readonly name: string;
  readonly sha: string;
  readonly source: string;
  readonly body: ScriptBody | BatchBody;
}

/** Each Lua script of the Redis store, told once more; a differential test compares the two. */
export const knownScripts: readonly KnownScript[] = [
  { ...lua.acquire, body: acquire },
  { ...lua.admit, body: admit },
  { ...lua.batch, body: batch },
  { ...lua.breakForeign, body: breakForeign },
  { ...lua.clusterAcquire, body: clusterAcquire },
  { ...lua.clusterRelease, body: clusterRelease },
  { ...lua.clusterTouch, body: clusterTouch },
  { ...lua.inspect, body: inspect },
  { ...lua.nodeRecord, body: nodeRecord },
  { ...lua.plainAcquire, body: plainAcquire },
  { ...lua.plainBatch, body: plainBatch },
  { ...lua.plainRenew, body: plainRenew },
  { ...lua.plainTouch, body: plainTouch },
  { ...lua.release, body: release },
  { ...lua.renew, body: renew },
  { ...lua.touch, body: touch },
];

export const scriptsBySha: ReadonlyMap<string, KnownScript> = new Map(
  knownScripts.map((script) => [script.sha, script]),
);

export const scriptsBySource: ReadonlyMap<string, KnownScript> = new Map(
  knownScripts.map((script) => [script.source, script]),
);
