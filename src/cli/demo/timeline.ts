import { styleText } from "node:util";
import type { Lane, Mark, MarkKind, Phase, Span } from "./lanes.ts";

type Style = Parameters<typeof styleText>[0];

export interface Look {
  readonly color: boolean;
  /** True if the terminal shows more than ASCII. */
  readonly unicode: boolean;
  readonly columns: number;
}

export interface TimelineOptions extends Look {
  /** Time span that the full width stands for. */
  readonly totalMs: number;
}

const nameColumns = 9;
const cellsMin = 20;
const cellsMax = 180;

const fills: { readonly [phase in Phase]: { unicode: string; ascii: string; style: Style } } = {
  waits: { unicode: "·", ascii: ".", style: "dim" },
  holds: { unicode: "━", ascii: "=", style: ["bgGreen", "black"] },
  frozen: { unicode: "▒", ascii: "#", style: ["bgGreen", "blue"] },
  overdue: { unicode: "░", ascii: "~", style: "blue" },
};

const signs: { readonly [kind in MarkKind]: { unicode: string; ascii: string; style: Style } } = {
  killed: { unicode: "✗", ascii: "X", style: ["red", "bold"] },
  write: { unicode: "▪", ascii: "+", style: "green" },
  stale: { unicode: "!", ascii: "!", style: ["bgRed", "white"] },
  refused: { unicode: "⊘", ascii: "0", style: ["yellow", "bold"] },
};

/** Draws the lanes under one time axis. Each line fits into `columns`. */
export function drawTimeline(lanes: readonly Lane[], options: TimelineOptions): readonly string[] {
  const cells = Math.min(cellsMax, Math.max(cellsMin, options.columns - nameColumns - 2));
  const cellMs = options.totalMs / cells;
  return [
    " ".repeat(nameColumns + 1) + axis(cells, cellMs),
    ...lanes.map(
      (lane) => ` ${lane.name.padEnd(nameColumns)}${drawLane(lane, cells, cellMs, options)}`,
    ),
  ];
}

/** Returns the meaning of the signs, wrapped to `columns`. */
export function legend(look: Look, label: "fence" | "turn"): readonly string[] {
  const { columns } = look;
  const parts: readonly (readonly [sign: string, meaning: string])[] = [
    [paint(look, fills.holds.style, `7${glyph(look, fills.holds)}`), `holds the lock, ${label} 7`],
    [paint(look, fills.waits.style, glyph(look, fills.waits)), "waits"],
    [paint(look, fills.frozen.style, glyph(look, fills.frozen)), "frozen"],
    [paint(look, fills.overdue.style, glyph(look, fills.overdue)), "frozen, lease over"],
    [paint(look, signs.killed.style, glyph(look, signs.killed)), "killed"],
    [paint(look, signs.write.style, glyph(look, signs.write)), "write"],
    [paint(look, signs.stale.style, glyph(look, signs.stale)), "late write taken"],
    [paint(look, signs.refused.style, glyph(look, signs.refused)), "late write refused"],
  ];
  const lines: string[] = [];
  let line = "";
  let width = 0;
  for (const [index, [sign, meaning]] of parts.entries()) {
    const partWidth = (index === 0 ? 2 : 1) + 1 + meaning.length + 3;
    if (width > 0 && width + partWidth > columns) {
      lines.push(line);
      [line, width] = ["", 0];
    }
    line += `${width === 0 ? " " : "   "}${sign} ${meaning}`;
    width += partWidth;
  }
  return [...lines, line];
}

function axis(cells: number, cellMs: number): string {
  const stepMs = cellMs * 12 > 2_000 ? 5_000 : cellMs * 12 > 1_000 ? 2_000 : 1_000;
  let text = "";
  for (let atMs = 0; ; atMs += stepMs) {
    const tick = `${atMs / 1_000}s`;
    const place = Math.round(atMs / cellMs);
    if (place + tick.length > cells) return text;
    text = text.padEnd(place) + tick;
  }
}

interface Cell {
  text: string;
  style: Style | undefined;
}

function drawLane({ spans, marks }: Lane, cells: number, cellMs: number, look: Look): string {
  const row: Cell[] = Array.from({ length: cells }, () => ({ text: " ", style: undefined }));
  for (const span of spans) fill(row, span, cellMs, look);
  for (const mark of marks) put(row, mark, cellMs, look);
  return render(row, look).trimEnd();
}

function fill(row: Cell[], span: Span, cellMs: number, look: Look): void {
  const first = Math.floor(span.fromMs / cellMs);
  const last = Math.max(first, Math.ceil(span.toMs / cellMs) - 1);
  const { style } = fills[span.phase];
  const label = span.phase === "holds" && span.label.length <= last - first + 1 ? span.label : "";
  for (let place = first; place <= last && place < row.length; place += 1) {
    const drawn = label[place - first] ?? glyph(look, fills[span.phase]);
    row[place] = { text: drawn, style };
  }
}

/** Puts a mark on the row, beside marks of the same moment. */
function put(row: Cell[], { kind, atMs }: Mark, cellMs: number, look: Look): void {
  const sign = glyph(look, signs[kind]);
  const taken = new Set(Object.values(signs).map((known) => glyph(look, known)));
  let place = Math.min(row.length - 1, Math.floor(atMs / cellMs));
  while (place < row.length - 1 && taken.has(row[place]?.text ?? "")) place += 1;
  row[place] = { text: sign, style: signs[kind].style };
}

function render(row: readonly Cell[], look: Look): string {
  let line = "";
  for (let from = 0; from < row.length;) {
    const style = row[from]?.style;
    let to = from;
    while (to < row.length && row[to]?.style === style) to += 1;
    const text = row
      .slice(from, to)
      .map((cell) => cell.text)
      .join("");
    line += style === undefined ? text : paint(look, style, text);
    from = to;
  }
  return line;
}

function glyph({ unicode }: Look, both: { unicode: string; ascii: string }): string {
  return unicode ? both.unicode : both.ascii;
}

export function paint({ color }: Look, style: Style, text: string): string {
  // The caller has decided about colour; styleText must not check stream and environment again.
  return color ? styleText(style, text, { validateStream: false }) : text;
}
