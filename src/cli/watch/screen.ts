import { stripVTControlCharacters } from "node:util";
import { lockColumns, lockRow } from "../lock-view.ts";
import type { Output } from "../output.ts";
import { renderTable, type Column } from "../table.ts";
import { bar, shortDuration } from "../words.ts";
import type { Sighting } from "./sightings.ts";

/** Contents of the screen at one moment. */
export interface Frame {
  readonly store: string;
  readonly sightings: readonly Sighting[];
  readonly nowMs: number;
  /** Reason why there is no new data. */
  readonly trouble: string | undefined;
  /** True if the locks are read and shown only once. */
  readonly isOnce: boolean;
}

const age: Column = { title: "AGE", align: "right", drop: 3 };
const bars: Column = { title: "TTL", drop: 1 };

/**
 * Returns the lines of one screen, at most `rows`. If the locks are shown only once, leaves out the
 * columns that need a history.
 */
export function renderFrame(frame: Frame, output: Output, rows: number): readonly string[] {
  const { colors, lineColumns: width } = output;
  const { sightings, trouble, store, nowMs, isOnce } = frame;
  // If the locks are read only once, their age and TTL are unknown.
  const columns = isOnce ? lockColumns : withHistory;
  const foot = trouble === undefined ? [] : wrap(trouble, width).slice(0, troubleRowsMax);
  const room = Math.max(1, rows - 4 - Math.max(1, foot.length));
  const shown = sightings.slice(0, room);
  const count = sightings.length === 1 ? "1 lock" : `${sightings.length} locks`;
  const place = colors.dim(cut(store, Math.max(8, width - 12 - count.length)));
  const head = `${colors.bold("holdfast")}  ${count}  ${place}`;
  const cells = shown.map((sighting) => {
    return isOnce
      ? lockRow(sighting.seen, output)
      : rowOf(sighting, nowMs, output.columns >= 100 ? 16 : 8, output);
  });
  const table = renderTable(columns, cells, { colors, columns: width }).split("\n");
  // Rows that are not up to date are grey.
  const body =
    trouble === undefined ? table : table.map((line) => colors.dim(stripVTControlCharacters(line)));
  const more = sightings.length > room ? [colors.dim(`… and ${sightings.length - room} more`)] : [];
  const nothing = [colors.dim("nothing is held")];
  const held = shown.length === 0 ? (trouble === undefined ? nothing : []) : body;
  return [head, "", ...held, ...more, ...foot.map((line) => colors.red(line))];
}

const withHistory: readonly Column[] = lockColumns.flatMap((column) => {
  return column.title === "LEFT" ? [age, bars, column] : [column];
});

const troubleRowsMax = 4;

function rowOf(
  sighting: Sighting,
  nowMs: number,
  barWidth: number,
  output: Output,
): readonly string[] {
  const { colors } = output;
  const { seen, sinceMs, atLeast, fullMs } = sighting;
  const share = fullMs === 0 ? 0 : (seen.remainingMs ?? 0) / fullMs;
  // A lease is renewed after a third of its TTL. If less than a third is left, renewals fail.
  const paint = share > 0.5 ? colors.green : share > 1 / 3 ? colors.yellow : colors.red;
  const [resource = "", holder = "", ...rest] = lockRow(seen, output);
  const history = [ageOf(nowMs - sinceMs, atLeast), paint(bar(share, barWidth))];
  return [resource, holder, ...history, ...rest];
}

/**
 * Returns the age of a lock. If the lock was held at the first look, only a lower bound is known.
 */
function ageOf(ms: number, atLeast: boolean): string {
  if (!atLeast) return shortDuration(ms);
  return ms < 1_000 ? "–" : `≥${shortDuration(ms)}`;
}

/** Breaks a message into lines at its spaces, so that its reason stays readable. */
function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) {
      lines[lines.length - 1] = `${line} ${word}`;
    } else {
      lines.push(cut(word, width));
    }
  }
  return lines;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(1, width - 1))}…`;
}

const escape = "\u001B[";

/** Shows a live table on the whole terminal; `leave` restores the terminal. */
export class Screen {
  enter(): void {
    process.stdout.write(`${escape}?1049h${escape}?25l`);
  }

  draw(lines: readonly string[]): void {
    const text = lines.map((line) => `${line}${escape}K`).join("\r\n");
    process.stdout.write(`${escape}H${text}${escape}J`);
  }

  leave(): void {
    process.stdout.write(`${escape}?25h${escape}?1049l`);
  }
}
