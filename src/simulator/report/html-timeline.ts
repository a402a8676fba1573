import type { Scenario } from "../scenario.ts";
import type { SimulationReport } from "../simulate.ts";
import type { TraceEvent } from "../trace.ts";
import { escapeHtml, pageOf, type PageOptions } from "./html-page.ts";

const laneHeight = 54;
const left = 108;
const width = 1_320;
const plotWidth = width - left - 24;

/** Bar or dot in one lane (row of a client or node), in the world's time. */
interface Shape {
  readonly lane: string;
  readonly kind: string;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly title: string;
}

/**
 * Returns one self-contained page: a lane (row) per client and node, leases and faults as bars,
 * other events as dots.
 */
export function htmlTimeline(report: SimulationReport, options: PageOptions = {}): string {
  const { scenario, virtualMs } = report;
  const lanes = lanesOf(report);
  const x = (atMs: number): number => left + (atMs / Math.max(1, virtualMs)) * plotWidth;
  const y = (lane: string): number => 34 + lanes.indexOf(lane) * laneHeight;
  const height = 34 + lanes.length * laneHeight + 16;
  const shapes = [...leasesOf(report), ...faultsOf(scenario), ...marksOf(report)];
  const drawn = shapes
    .filter(({ lane }) => lanes.includes(lane))
    .map((shape) => draw(shape, x, y(shape.lane)));
  const svg = [
    `<svg viewBox="0 0 ${width} ${height}" role="img" ` +
      `aria-label="Timeline of seed ${scenario.seed}">`,
    ...axis(virtualMs, x, height),
    ...lanes.map((lane) => laneLine(lane, y(lane))),
    phaseLine(scenario.safetyMs, x, height),
    ...drawn,
    "</svg>",
  ];
  return pageOf(report, svg.join("\n"), options);
}

function lanesOf({ scenario }: SimulationReport): string[] {
  const clients = scenario.clients.map((_, index) => `client-${index + 1}`);
  const nodes = scenario.nodes.map((_, index) => `node-${index + 1}`);
  return ["world", ...clients, ...nodes];
}

/** Returns the lane of a process. A restarted process (client-1.2) shares the lane of client-1. */
function laneOf(name: string): string {
  return name.replace(/\.\d+$/, "");
}

function leasesOf({ history }: SimulationReport): Shape[] {
  return history.tenures.map((tenure) => ({
    lane: laneOf(tenure.client),
    kind: `lease ${tenure.resource}`,
    fromMs: tenure.acquiredMs,
    untilMs: tenure.trustedUntilMs,
    title:
      `${tenure.client} held "${tenure.resource}" under fence ${tenure.fence ?? "-"}, ` +
      `${tenure.acquiredMs.toFixed(1)}–${tenure.trustedUntilMs.toFixed(1)} ms`,
  }));
}

/** Returns the faults that happened. All faults end with the safety phase. */
function faultsOf({ faults, safetyMs }: Scenario): Shape[] {
  return faults.flatMap((fault) => {
    if (fault.atMs >= safetyMs) return [];
    const lanes = [
      ...("client" in fault ? [`client-${fault.client + 1}`] : []),
      ...("node" in fault ? [`node-${fault.node + 1}`] : []),
    ];
    const forMs = "forMs" in fault ? fault.forMs : 0;
    const untilMs = Math.min(safetyMs, fault.atMs + forMs);
    const title = `${fault.kind} at ${fault.atMs.toFixed(1)} ms ${JSON.stringify(fault)}`;
    const on = lanes.length === 0 ? ["world"] : lanes;
    const kind = `fault ${fault.kind}`;
    return on.map((lane) => ({ lane, kind, fromMs: fault.atMs, untilMs, title }));
  });
}

const marked = new Set(["lost", "doubtful", "admitted", "raised", "healed", "closing"]);

function marksOf({ trace, violations }: SimulationReport): Shape[] {
  const marks = trace.filter(({ kind }) => marked.has(kind)).map(markOf);
  const found = violations.map(({ rule, atMs, text }) => ({
    lane: "world",
    kind: "violation",
    fromMs: atMs,
    untilMs: atMs,
    title: `${rule}: ${text}`,
  }));
  return [...marks, ...found];
}

function markOf({ lane, kind, atMs, text }: TraceEvent): Shape {
  const title = `${lane}: ${kind} at ${atMs.toFixed(1)} ms ${text}`;
  return { lane: laneOf(lane), kind, fromMs: atMs, untilMs: atMs, title };
}

function draw(shape: Shape, x: (atMs: number) => number, top: number): string {
  const { kind, fromMs, untilMs } = shape;
  const title = `<title>${escapeHtml(shape.title)}</title>`;
  const x1 = x(fromMs).toFixed(1);
  const span = Math.max(1.5, x(untilMs) - x(fromMs)).toFixed(1);
  const [family = "", detail = ""] = kind.split(" ");
  if (family === "lease") {
    const row = ["a", "b", "c"].indexOf(detail);
    const rect = `x="${x1}" y="${top + 6 + row * 8}" width="${span}" height="7" rx="2"`;
    return `<rect class="lease ${detail}" ${rect}>${title}</rect>`;
  }
  if (family === "fault") {
    const rect = `x="${x1}" y="${top + 40}" width="${span}" height="8" rx="2"`;
    return `<rect class="fault ${detail}" ${rect}>${title}</rect>`;
  }
  return `<circle class="mark ${family}" cx="${x1}" cy="${top + 34}" r="4">${title}</circle>`;
}

function laneLine(lane: string, top: number): string {
  const y = top + 51;
  const line = `<line class="lane" x1="${left}" x2="${width - 24}" y1="${y}" y2="${y}"/>`;
  return `<text class="name" x="${left - 12}" y="${top + 28}">${lane}</text>${line}`;
}

function phaseLine(atMs: number, x: (atMs: number) => number, height: number): string {
  const at = x(atMs).toFixed(1);
  const text = `<text class="tick" x="${at}" y="14">faults end</text>`;
  return `<line class="phase" x1="${at}" x2="${at}" y1="20" y2="${height - 10}"/>${text}`;
}

function axis(virtualMs: number, x: (atMs: number) => number, height: number): string[] {
  const rough = virtualMs / 10;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
  const ticks: string[] = [];
  for (let atMs = 0; atMs <= virtualMs; atMs += step) {
    const at = x(atMs).toFixed(1);
    const label = atMs >= 10_000 ? `${atMs / 1_000} s` : `${atMs} ms`;
    ticks.push(
      `<line class="grid" x1="${at}" x2="${at}" y1="30" y2="${height - 10}"/>`,
      `<text class="tick" x="${at}" y="27">${label}</text>`,
    );
  }
  return ticks;
}
