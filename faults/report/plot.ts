import { brokenWindows } from "../check/assumptions.ts";
import { Canvas } from "./canvas.ts";
import { isFaultKind, kindTerms, type FaultKind } from "../kinds.ts";
import type { Finished } from "./report.ts";

const width = 1_400;
const left = 110;
const right = 20;
const laneHeight = 20;
const zoomMs = 20_000;

const holderColours = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#9c755f", "#edc948"];
/** Differs from the colours of all faults and holders, so that it stands out. */
const overlapColour = "#000000";
const falseLossColour = "#ff0000";
const faultColours: Readonly<Record<FaultKind, string>> = {
  "kill-empty": "#b10026",
  "kill-keep": "#e31a1c",
  "freeze-node": "#3182bd",
  "freeze-client": "#3182bd",
  "kill-client": "#e31a1c",
  cut: "#636363",
  "cut-requests": "#969696",
  "cut-replies": "#969696",
  delay: "#bdbdbd",
  "lose-replies": "#252525",
  "kill-connections": "#8c2d04",
  "kill-subscribers": "#807dba",
  "clock-step": "#dd1c77",
  "client-clock-step": "#dd1c77",
  "script-flush": "#31a354",
  "flush-all": "#b10026",
  "out-of-memory": "#fd8d3c",
  busy: "#fdae6b",
  misconf: "#fdd0a2",
  evict: "#dd1c77",
};

interface Panel {
  readonly title: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** True if there are too many leases to draw each: shows their number per second instead. */
  readonly counts: boolean;
}

/** Draws holders and faults over time: the whole run, and its most eventful part enlarged. */
export function plotOf(finished: Finished): string {
  const { history, version, options } = finished;
  const { startMs, endMs } = history;
  const busiest = busiestMs(finished);
  const whole = {
    title: "the whole run; bars: leases that began",
    fromMs: startMs,
    toMs: endMs,
    counts: true,
  };
  const zoomed = {
    title: `${zoomMs / 1_000} s of it; who held what`,
    fromMs: busiest,
    toMs: Math.min(endMs, busiest + zoomMs),
    counts: false,
  };
  const canvas = new Canvas(width);
  canvas.text(8, canvas.skip(24), `${version}, seed ${options.seed}`, { size: 15 });
  for (const panel of [whole, zoomed]) drawPanel(canvas, finished, panel);
  drawLegend(canvas, finished);
  return canvas.svg();
}

function drawPanel(canvas: Canvas, finished: Finished, panel: Panel): void {
  const { history, options } = finished;
  const { fromMs, toMs } = panel;
  const x = (ms: number): number =>
    left +
    (Math.min(Math.max(ms, fromMs), toMs) - fromMs) * ((width - left - right) / (toMs - fromMs));
  canvas.text(8, canvas.skip(30) - 6, panel.title, { size: 12, bold: true });
  const topY = canvas.y;
  const lanes = history.resources.length + options.clients + options.nodes;
  for (const window of brokenWindows(history)) {
    if (window.assumption === "data" || window.toMs < fromMs || window.fromMs > toMs) continue;
    const windowWidth = x(window.toMs) - x(window.fromMs);
    canvas.rect(x(window.fromMs), topY, windowWidth, lanes * laneHeight, "#fde0ef");
  }
  for (const resource of history.resources) {
    const y = canvas.lane(resource, laneHeight, width - right);
    if (panel.counts) drawCounts(canvas, finished, resource, panel, x, y);
    else drawHolders(canvas, finished, resource, panel, x, y);
  }
  for (let client = 0; client < options.clients; client += 1) {
    const y = canvas.lane(`client ${client + 1}`, laneHeight, width - right);
    const isOwn = (kind: string): boolean => kind.endsWith("client") || kind.startsWith("client");
    drawFaults(
      canvas,
      finished,
      panel,
      x,
      y,
      (fault) => isOwn(fault.kind) && fault.clients.includes(client),
    );
  }
  for (let node = 0; node < options.nodes; node += 1) {
    const y = canvas.lane(`node ${node + 1}`, laneHeight, width - right);
    drawFaults(canvas, finished, panel, x, y, ({ nodes }) => nodes.includes(node));
  }
  drawFindings(canvas, finished, panel, x, topY);
  drawAxis(canvas, history.startMs, panel, x);
}

type Scale = (ms: number) => number;

function drawCounts(
  canvas: Canvas,
  { findings }: Finished,
  resource: string,
  { fromMs, toMs }: Panel,
  x: Scale,
  y: number,
): void {
  const binMs = Math.max(1_000, (toMs - fromMs) / 600);
  const counts = new Map<number, number>();
  for (const span of findings.spans) {
    if (span.resource !== resource) continue;
    const bin = Math.floor((span.fromMs - fromMs) / binMs);
    counts.set(bin, (counts.get(bin) ?? 0) + 1);
  }
  const most = Math.max(1, ...counts.values());
  for (const [bin, count] of counts) {
    const height = (count / most) * (laneHeight - 4);
    const at = x(fromMs + bin * binMs);
    canvas.rect(
      at,
      y + laneHeight - 2 - height,
      x(fromMs + (bin + 1) * binMs) - at,
      height,
      "#7f9db9",
    );
  }
}

function drawHolders(
  canvas: Canvas,
  { findings }: Finished,
  resource: string,
  { fromMs, toMs }: Panel,
  x: Scale,
  y: number,
): void {
  for (const span of findings.spans) {
    if (span.resource !== resource || span.toMs < fromMs || span.fromMs > toMs) continue;
    const client = Number(/^c(\d+)/.exec(span.who)?.[1] ?? 1) - 1;
    const colour = holderColours[client % holderColours.length] ?? "#333";
    const at = x(span.fromMs);
    canvas.rect(at, y + 3, Math.max(1, x(span.toMs) - at), laneHeight - 6, colour);
  }
}

function drawFaults(
  canvas: Canvas,
  { history }: Finished,
  { fromMs, toMs }: Panel,
  x: Scale,
  y: number,
  isHere: (fault: (typeof history.faults)[number]) => boolean,
): void {
  const ends = new Map(
    history.faults.filter(({ phase }) => phase === "end").map(({ id, t }) => [id, t]),
  );
  for (const fault of history.faults) {
    const endMs = ends.get(fault.id) ?? history.endMs;
    if (fault.phase !== "begin" || !isHere(fault) || endMs < fromMs || fault.t > toMs) continue;
    const at = x(fault.t);
    const kind = isFaultKind(fault.kind) ? fault.kind : undefined;
    const colour = kind === undefined ? "#000" : faultColours[kind];
    // A fault of links is drawn thin, because other links of the node may work.
    const thin = kind !== undefined && kindTerms[kind].victim === "links";
    const [offset, height] = thin ? [laneHeight - 7, 5] : [3, laneHeight - 8];
    canvas.rect(at, y + offset, Math.max(2, x(endMs) - at), height, colour, fault.kind);
  }
}

function drawFindings(
  canvas: Canvas,
  { findings, history }: Finished,
  { fromMs, toMs }: Panel,
  x: Scale,
  topY: number,
): void {
  for (const overlap of findings.overlaps) {
    if (overlap.toMs < fromMs || overlap.fromMs > toMs) continue;
    const lane = history.resources.indexOf(overlap.resource);
    const at = x(overlap.fromMs);
    const size = Math.max(3, x(overlap.toMs) - at);
    canvas.rect(at, topY + lane * laneHeight, size, laneHeight, overlapColour, "overlap");
  }
  for (const loss of findings.earlyLosses) {
    if (loss.explained !== undefined || loss.atMs < fromMs || loss.atMs > toMs) continue;
    const lane = history.resources.indexOf(loss.resource);
    const y = topY + lane * laneHeight;
    canvas.rect(x(loss.atMs), y, 3, laneHeight, falseLossColour, `false loss: ${loss.lease}`);
  }
}

function drawAxis(canvas: Canvas, startMs: number, { fromMs, toMs }: Panel, x: Scale): void {
  const seconds = (toMs - fromMs) / 1_000;
  const step = [1, 2, 5, 10, 20, 30, 60, 120, 300].find((each) => seconds / each <= 16) ?? 600;
  const { y } = canvas;
  canvas.skip(20);
  const first = Math.ceil((fromMs - startMs) / 1_000 / step) * step;
  for (let at = first; at <= (toMs - startMs) / 1_000; at += step) {
    canvas.text(x(startMs + at * 1_000), y + 12, `${at} s`, { size: 10, middle: true });
  }
}

function drawLegend(canvas: Canvas, { options }: Finished): void {
  const clients = Array.from({ length: options.clients }, (_, client) => {
    return [`client ${client + 1}`, holderColours[client % holderColours.length] ?? ""] as const;
  });
  const marks = [
    ...clients,
    ["overlap of trusted leases", overlapColour],
    ["false loss", falseLossColour],
    ["an assumption is broken", "#fde0ef"],
    ...Object.entries(faultColours),
  ] as const;
  canvas.skip(8);
  canvas.legend(marks, left, width - right);
}

/** Returns the start of the enlarged part: most faults begin there, and failures count for more. */
function busiestMs({ history, findings }: Finished): number {
  const { startMs, endMs, faults } = history;
  let best = { atMs: startMs, score: -1 };
  for (let atMs = startMs; atMs <= Math.max(startMs, endMs - zoomMs); atMs += 1_000) {
    const within = (ms: number): boolean => ms >= atMs && ms <= atMs + zoomMs;
    const overlaps = findings.overlaps.filter(({ fromMs }) => within(fromMs)).length;
    const lost = findings.earlyLosses.filter(
      ({ atMs: lostMs, explained }) => explained === undefined && within(lostMs),
    ).length;
    const score = faults.filter(({ t }) => within(t)).length + (overlaps + lost) * 20;
    if (score > best.score) best = { atMs, score };
  }
  return best.atMs;
}
