import type { StoreError } from "../../../core/errors.ts";
import { nodeRecordKey, wireFormat } from "../commands/keys.ts";
import { ScriptCall, type NodeCall } from "../commands/node-call.ts";
import { numberOf } from "../commands/decode.ts";
import { refusal, unexpected } from "../commands/refusals.ts";
import * as scripts from "../scripts/generated.ts";
import type { Layout } from "./layout.ts";

/**
 * Reply of a node about its layout, which is the set of groups that it works for: `open` (it grants
 * for this layout), `claimed` (it grants for none until this layout opens), `older` (it is in an
 * older layout), `fresh` (it is in none), or `other` (it is in another layout of this version, or
 * in a newer one).
 */
export type LayoutReply =
  | { readonly kind: "open"; readonly floor: number }
  | {
      readonly kind: "claimed" | "older" | "fresh";
      /** Time since the node was claimed; 0 if it is not claimed. */
      readonly waitedMs: number;
      /**
       * Longest time that leases of the previous layout may still live, as its clients reported.
       */
      readonly holdMs: number;
      /** Value of `maxTtl` in the node record; 0 if the record has none. */
      readonly ttlMaxMs: number;
      /** Upper bound of the fences granted on this node. */
      readonly highest: number;
      /** Groups of the last layout that was open on this node. */
      readonly ids: readonly string[];
    }
  | { readonly kind: "other"; readonly format: string; readonly error: StoreError };

export type LayoutAct =
  | { readonly act: "look" | "claim" }
  /**
   * Opens the layout on a node. Sent when every node has been claimed for `waitMs`; the node checks
   * that time itself.
   */
  | { readonly act: "open"; readonly waitMs: number; readonly floor: number }
  /** Opens the layout at once on a node that missed it: it is open on other nodes already. */
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

/** Parses the reply of layout.lua: "O floor", "C …", "P …", "F …" or "X …". */
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
