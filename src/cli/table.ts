import { stripVTControlCharacters } from "node:util";
import Table from "cli-table3";
import type { Output } from "./output.ts";

export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** Gives way where the terminal is too narrow; the others keep their width. */
  readonly elastic?: boolean;
}

const gap = 2;
const elasticMin = 8;
const bare = Object.fromEntries(
  ["top", "bottom", "mid", "left", "right"]
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat(["mid-mid", "middle"])
    .map((name) => [name, ""]),
);

/** Rows under titles, cut to the width of the terminal. Cells may hold colours. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { columns: width, colors }: Pick<Output, "columns" | "colors">,
): string {
  const titles = columns.map(({ title }) => colors.dim(title));
  const widths = fit(columns, rows, width);
  const table = new Table({
    head: titles,
    colWidths: widths,
    colAligns: columns.map(({ align }) => align ?? "left"),
    chars: bare,
    style: { head: [], border: [], "padding-left": 0, "padding-right": gap, compact: true },
    truncate: "…",
  });
  table.push(...rows.map((row) => row.map((cell) => ({ content: cell }))));
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

function fit(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] {
  const natural = columns.map(({ title }, index) => {
    return Math.max(title.length, ...rows.map((row) => plainLength(row[index] ?? ""))) + gap;
  });
  let excess = natural.reduce((sum, one) => sum + one, 0) - width;
  // The widest gives way first, down to a width that still says something.
  while (excess > 0) {
    const candidates = natural
      .map((length, index) => ({ length, index }))
      .filter(({ index, length }) => columns[index]?.elastic === true && length > elasticMin + gap)
      .sort((a, b) => b.length - a.length);
    const [widest] = candidates;
    if (widest === undefined) break;
    natural[widest.index] = widest.length - 1;
    excess -= 1;
  }
  return natural;
}

const scripts = ["Han", "Hiragana", "Katakana", "Hangul"].map((name) => `\\p{Script=${name}}`);
const wide = new RegExp([...scripts, "\\p{Emoji_Presentation}"].join("|"), "u");
const segmenter = new Intl.Segmenter();

/** How many cells of the terminal it takes. */
function plainLength(text: string): number {
  const segments = [...segmenter.segment(stripVTControlCharacters(text))];
  return segments.reduce((sum, { segment }) => sum + (wide.test(segment) ? 2 : 1), 0);
}
