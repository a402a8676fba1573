import type { SimulationReport } from "../simulate.ts";
import type { TraceEvent } from "../trace.ts";

export interface TimelineOptions {
  /** Includes every command that a node executed. @default false */
  readonly commands?: boolean;
  /** Limit for the length of an event's text; longer texts are cut. @default 100 */
  readonly width?: number;
  /** Command that reproduces this report. @default the command for its seed */
  readonly replay?: string;
}

/** Returns the trace as text, one line per event, with broken assumptions and violations. */
export function textTimeline(report: SimulationReport, options: TimelineOptions = {}): string {
  const { scenario, trace, violations, breaks } = report;
  const lines = [headline(report), ""];
  for (const event of trace) {
    if (options.commands !== true && isCommand(event)) continue;
    lines.push(lineOf(event, options.width ?? 100));
  }
  lines.push("", `broken assumptions: ${breaks.length === 0 ? "none" : ""}`);
  for (const { promise, why, fromMs, untilMs } of breaks) {
    lines.push(`  ${promise}: ${why} (${span(fromMs, untilMs)})`);
  }
  lines.push(`violations: ${violations.length === 0 ? "none" : ""}`);
  for (const { rule, atMs, text } of violations) lines.push(`  ${ms(atMs)}  ${rule}: ${text}`);
  const { replay = `npm run sim -- --seed ${scenario.seed}` } = options;
  lines.push("", `replay: ${replay}    trace ${report.hash}`);
  return lines.join("\n");
}

export function isCommand({ kind }: TraceEvent): boolean {
  return kind === "executed" || kind === "stray";
}

function headline(report: SimulationReport): string {
  const { scenario, eventCount, virtualMs, history, unfenced, fenced } = report;
  const { seed, nodes, clients, store, work, link } = scenario;
  const fencing = store.fencing ? `fences, admission ${store.admission}` : "no fences";
  return [
    `seed ${seed}: ${nodes.length} nodes, ${clients.length} clients, ${fencing}, ` +
      `ttl ${work.ttlMs} ms`,
    `network: ${link.delayMs.toFixed(1)} ms one way, a tail of ${link.tailMs.toFixed(0)} ms in ` +
      `${link.tailChance * 100} %${link.resends ? ", drivers send again" : ""}; ` +
      `${scenario.faults.length} faults in ${scenario.safetyMs} ms`,
    `${eventCount} events, ${virtualMs.toFixed(0)} ms, ${history.tenures.length} tenures; ` +
      `updates lost: ${unfenced.lost} of ${unfenced.accepted} unfenced, ` +
      `${fenced.lost} of ${fenced.accepted} fenced (${fenced.rejected} stale writes refused)`,
  ].join("\n");
}

function lineOf({ atMs, lane, kind, text }: TraceEvent, width: number): string {
  const cut = text.length > width ? `${text.slice(0, width - 1)}…` : text;
  return `${ms(atMs)}  ${lane.padEnd(11)} ${kind.padEnd(13)} ${cut}`.trimEnd();
}

function ms(atMs: number): string {
  return atMs.toFixed(3).padStart(12);
}

function span(fromMs: number, untilMs: number): string {
  const from = fromMs.toFixed(1);
  return fromMs === untilMs ? `at ${from} ms` : `${from}–${untilMs.toFixed(1)} ms`;
}
