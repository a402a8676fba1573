import type { StoreError } from "../../../core/errors.ts";
import { nodeRecordKey } from "../fenced-dialect.ts";
import { ScriptCall, type NodeCall } from "../node-call.ts";
import { wireFormat } from "../quorum/shards.ts";
import { numberOf, refusal, unexpected } from "../replies.ts";
import * as scripts from "../scripts/generated.ts";
import type { Layout } from "./layout.ts";

/** What a node says about its layout. */
export type LayoutReply =
  | { readonly kind: "open"; readonly floor: number }
  | {
      readonly kind: "claimed" | "older" | "fresh";
      /** How long it has been closed for the layout it was in before. */
      readonly waitedMs: number;
      /** How long leases of that layout may live on, as its clients said. */
      readonly holdMs: number;
      /** The node's own `maxTtl`; 0 where it knows none. */
      readonly ttlMaxMs: number;
      /** No fence was granted here that is greater. */
      readonly highest: number;
      /** The groups of the last layout that was open here. */
      readonly ids: readonly string[];
    }
  | { readonly kind: "other"; readonly format: string; readonly error: StoreError };

export type LayoutAct =
  | { readonly act: "look" | "claim" }
  /** When every node has been claimed for `waitMs`, which the node checks for itself as well. */
  | { readonly act: "open"; readonly waitMs: number; readonly floor: number }
  /** The layout is open elsewhere, so this node can only have missed it. */
  | { readonly act: "heal"; readonly floor: number };

export function layoutCall(layout: Layout, group: string, step: LayoutAct): NodeCall<LayoutReply> {
  const waitMs = step.act === "open" ? step.waitMs : 0;
  const floor = step.act === "open" || step.act === "heal" ? step.floor : 0;
  const args = [
    step.act,
    String(layout.version),
    layout.open(group),
    layout.claimed(group),
    wireFormat,
    String(waitMs),
    String(floor),
    layout.ids.join(","),
    String(layout.holdMs),
  ];
  return new ScriptCall({ script: scripts.layout, read: readLayout }, [nodeRecordKey], args);
}

const kinds = { C: "claimed", P: "older", F: "fresh" } as const;

/** "O floor", "C …", "P …", "F …" or "X …". */
function readLayout(text: string): LayoutReply {
  const words = text.split(" ");
  const [kind, waited, hold, max, highest, ids = "-"] = words;
  if (kind === "O") return { kind: "open", floor: numberOf(words[1], text) };
  if (kind === "X") return { kind: "other", format: words[2] ?? "", error: refusal(words) };
  if (kind !== "C" && kind !== "P" && kind !== "F") throw unexpected(text);
  return {
    kind: kinds[kind],
    waitedMs: numberOf(waited, text),
    holdMs: numberOf(hold, text),
    ttlMaxMs: numberOf(max, text),
    highest: numberOf(highest, text),
    ids: ids === "-" ? [] : ids.split(","),
  };
}
