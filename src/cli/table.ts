import { stripVTControlCharacters } from "node:util";
import type { Output } from "./output.ts";

export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** True if the column shrinks in a narrow terminal. Other columns keep their width. */
  readonly elastic?: boolean;
  /**
   * A column with a number is left out in a narrow terminal; the greatest number is left out first.
   */
  readonly drop?: number;
}

const gap = 2;
const colour = new RegExp(`(${String.fromCodePoint(27)}\\[[\\d;]*m)`);
const elasticMin = 8;
/**
 * Width of elastic columns. Other columns are left out before elastic columns get narrower than
 * this.
 */
const elasticEnough = 16;

/** Renders rows under titles, cut to the terminal width. Cells may contain colour codes. */
export function renderTable(
  allColumns: readonly Column[],
  allRows: readonly (readonly string[])[],
  { columns: width, colors }: Pick<Output, "columns" | "colors">,
): string {
  const shown = fitting(allColumns, allRows, width);
  const columns = shown.flatMap((index) => allColumns[index] ?? []);
  const rows = allRows.map((row) => shown.map((index) => row[index] ?? ""));
  const titles = columns.map(({ title }) => colors.dim(title));
  const widths = fit(columns, rows, width).map((cells) => cells - gap);
  const lines = [titles, ...rows].map((row) =>
    columns
      .map(({ align }, index) => fill(row[index] ?? "", widths[index] ?? 0, align))
      .join(" ".repeat(gap))
      .trimEnd(),
  );
  return lines.join("\n");
}

/** Cuts or pads a cell to `places` columns of the terminal. */
function fill(text: string, places: number, align: Column["align"]): string {
  const short = cut(text, places);
  const padding = " ".repeat(places - plainLength(short));
  return align === "right" ? `${padding}${short}` : `${short}${padding}`;
}

function cut(text: string, places: number): string {
  if (plainLength(text) <= places) return text;
  let left = places - "…".length;
  let isCut = false;
  // All colour codes are kept: the codes after the cut reset the codes before the cut.
  const pieces = text.split(colour).map((piece, index) => {
    if (index % 2 === 1 || isCut) return index % 2 === 1 ? piece : "";
    let kept = "";
    for (const { segment } of segmenter.segment(piece)) {
      left -= plainLength(segment);
      if (left < 0) {
        isCut = true;
        return `${kept}…`;
      }
      kept += segment;
    }
    return kept;
  });
  return pieces.join("");
}

/** Returns the indexes of the columns that are shown. */
function fitting(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): readonly number[] {
  const widths = naturalWidths(columns, rows);
  const needed = (index: number): number => {
    const natural = widths[index] ?? 0;
    return columns[index]?.elastic === true ? Math.min(natural, elasticEnough + gap) : natural;
  };
  let shown = columns.map((_, index) => index);
  for (;;) {
    const sum = shown.reduce((total, index) => total + needed(index), 0);
    const [next] = shown
      .filter((index) => columns[index]?.drop !== undefined)
      .toSorted((a, b) => (columns[b]?.drop ?? 0) - (columns[a]?.drop ?? 0));
    if (sum <= width || next === undefined) return shown;
    shown = shown.filter((index) => index !== next);
  }
}

/** Returns the width of each column with its gap, if nothing is cut. */
function naturalWidths(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): readonly number[] {
  return columns.map(({ title }, index) => {
    return Math.max(title.length, ...rows.map((row) => plainLength(row[index] ?? ""))) + gap;
  });
}

function fit(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] {
  const natural = [...naturalWidths(columns, rows)];
  let excess = natural.reduce((sum, one) => sum + one, 0) - width;
  // The widest elastic column shrinks first, down to `elasticMin`.
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

/** Returns the number of terminal columns of a text. */
function plainLength(text: string): number {
  const segments = [...segmenter.segment(stripVTControlCharacters(text))];
  return segments.reduce((sum, { segment }) => sum + (wide.test(segment) ? 2 : 1), 0);
}
