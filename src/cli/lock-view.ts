import type { Inspection } from "../core/store.ts";
import type { Output } from "./output.ts";
import type { Column } from "./table.ts";
import { printable, shortDuration } from "./words.ts";

/** Returns a lock in its JSON form. */
export function lockDocument(seen: Inspection): object {
  const { resource, state, foreign, neverExpires, label, fence, remainingMs, waiters } = seen;
  return { resource, state, foreign, neverExpires, label, fence, remainingMs, waiters };
}

export const lockColumns: readonly Column[] = [
  { title: "RESOURCE", elastic: true },
  { title: "HOLDER", elastic: true },
  { title: "LEFT", align: "right" },
  { title: "FENCE", align: "right", drop: 2 },
  { title: "WAITERS", align: "right", drop: 4 },
];

export function lockRow(seen: Inspection, { colors }: Pick<Output, "colors">): readonly string[] {
  return [
    colors.bold(printable(seen.resource)),
    holderText(seen),
    shortDuration(seen.remainingMs),
    String(seen.fence ?? "–"),
    String(seen.waiters ?? "–"),
  ];
}

/** Returns the holder's label, or a note if it has none. Stores keep no host or pid. */
export function holderText({ state, label, foreign }: Inspection): string {
  if (state === "free") return "–";
  if (foreign === true) return "(not holdfast)";
  if (state === "held") return label === undefined ? "(no label)" : printable(label);
  return state === "split" ? "(rivals)" : "(unknown)";
}
