import type { Output } from "../output.ts";
import { renderTable, type Column } from "../table.ts";
import { holderText } from "../lock-view.ts";
import { bar, printable, shortDuration } from "../words.ts";
import type { Sighting } from "./sightings.ts";

/** Contents of the screen at one moment. */
export interface Frame {
  readonly store: string;
  readonly sightings: readonly Sighting[];
  readonly nowMs: number;
  /** Reason why there is no new data. */
  readonly trouble: string | undefined;
}

const columns: readonly Column[] = [
  { title: "RESOURCE", elastic: true },
  { title: "HOLDER", elastic: true },
  { title: "AGE", align: "right" },
  { title: "TTL" },
  { title: "LEFT", align: "right" },
  { title: "FENCE", align: "right" },
  { title: "WAITERS", align: "right" },
];

/** Renders one screen as at most `rows` lines. */
export function renderFrame(frame: Frame, output: Output, rows: number): readonly string[] {
  const { colors } = output;
  const { sightings, trouble, store, nowMs } = frame;
  const barWidth = output.columns >= 100 ? 16 : 8;
  const room = Math.max(1, rows - 5);
  const shown = sightings.slice(0, room);
  const count = sightings.length === 1 ? "1 lock" : `${sightings.length} locks`;
  const place = colors.dim(cut(store, output.columns - 24));
  const head = `${colors.bold("holdfast")}  ${count}  ${place}`;
  const body =
    shown.length === 0
      ? [colors.dim("nothing is held")]
      : renderTable(
          columns,
          shown.map((sighting) => rowOf(sighting, nowMs, barWidth, output)),
          output,
        ).split("\n");
  const more = sightings.length > room ? [colors.dim(`… and ${sightings.length - room} more`)] : [];
  const foot = trouble === undefined ? [] : [colors.red(cut(trouble, output.columns))];
  return [head, "", ...body, ...more, ...foot];
}

function rowOf(
  sighting: Sighting,
  nowMs: number,
  barWidth: number,
  { colors }: Output,
): readonly string[] {
  const { seen, sinceMs, atLeast, fullMs } = sighting;
  const share = fullMs === 0 ? 0 : (seen.remainingMs ?? 0) / fullMs;
  // Renewals come after a third of the TTL; less than a third left means that they fail.
  const paint = share > 0.5 ? colors.green : share > 1 / 3 ? colors.yellow : colors.red;
  return [
    colors.bold(printable(seen.resource)),
    holderText(seen),
    ageOf(nowMs - sinceMs, atLeast),
    paint(bar(share, barWidth)),
    shortDuration(seen.remainingMs),
    String(seen.fence ?? "–"),
    String(seen.waiters ?? "–"),
  ];
}

/** Returns the age. If the lock was held before the first look, only a lower bound is known. */
function ageOf(ms: number, atLeast: boolean): string {
  if (!atLeast) return shortDuration(ms);
  return ms < 1_000 ? "–" : `≥${shortDuration(ms)}`;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(1, width - 1))}…`;
}

const escape = "\u001B[";

/** Takes over the terminal for a live table; `leave` restores it. */
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
