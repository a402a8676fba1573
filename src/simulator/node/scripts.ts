import * as lua from "../../stores/redis/scripts/generated.ts";
import { breakForeign, inspect } from "./lock-values.ts";
import { cluster, fenced, plain } from "./operation-scripts.ts";
import { admit, nodeRecord } from "./record-scripts.ts";
import type { ScriptBody } from "./script-context.ts";

export interface KnownScript {
  readonly name: string;
  readonly sha: string;
  readonly source: string;
  readonly body: ScriptBody;
}

/** Scripts of a simulated node. A differential test compares each with its Lua source. */
export const knownScripts: readonly KnownScript[] = [
  { ...lua.admit, body: admit },
  { ...lua.breakForeign, body: breakForeign },
  { ...lua.cluster, body: cluster },
  { ...lua.fenced, body: fenced },
  { ...lua.inspect, body: inspect },
  { ...lua.nodeRecord, body: nodeRecord },
  { ...lua.plain, body: plain },
];

export const scriptsBySha: ReadonlyMap<string, KnownScript> = new Map(
  knownScripts.map((script) => [script.sha, script]),
);

export const scriptsBySource: ReadonlyMap<string, KnownScript> = new Map(
  knownScripts.map((script) => [script.source, script]),
);
