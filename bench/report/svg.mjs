// @ts-check
/** Plots as SVG: bars that are compared with one of them, and lines over powers of ten. */

import { element, picture, rect, text } from "../../tools/svg/svg.mjs";

const style = { "font-family": "system-ui, sans-serif", "font-size": "12" };
const dark = "#111827";
const colours = { own: "#2563eb", raw: "#6b7280", peer: "#d97706" };
const lineColours = ["#6b7280", "#2563eb", "#0d9488", "#d97706"];
const width = 700;

/** @typedef {{ label: string, value: number, kind: keyof typeof colours, text: string }} Bar */
/** @typedef {readonly [number, number]} Point */

/**
 * @param {number} x
 * @param {number} y
 * @param {string} content
 * @param {import("../../tools/svg/svg.mjs").Attributes} [more]
 */
function textAt(x, y, content, more = {}) {
  return text(content, { x, y, fill: dark, ...more });
}

/** @param {number} height @param {readonly string[]} shapes */
function chart(height, shapes) {
  return picture(width, height, shapes, style);
}

/** @param {string} title @param {string} unit */
function heading(title, unit) {
  return [textAt(12, 22, title, { "font-weight": "600" }), textAt(12, 40, unit)];
}

/** @param {{ title: string, unit: string, bars: readonly Bar[], mark?: number }} chart */
export function barChart({ title, unit, bars, mark }) {
  const [left, barWidth, rowHeight, top] = [230, 380, 22, 56];
  const greatest = Math.max(mark ?? 0, ...bars.map(({ value }) => value)) || 1;
  const rows = bars.flatMap(({ label, value, kind, text: shown }, at) => {
    const y = top + at * rowHeight;
    const length = (value / greatest) * barWidth;
    return [
      textAt(left - 8, y + 12, label, { "text-anchor": "end" }),
      rect({ x: left, y, width: length, height: rowHeight - 6, fill: colours[kind] }),
      textAt(left + length + 6, y + 12, shown),
    ];
  });
  const bottom = top + bars.length * rowHeight;
  const x = left + ((mark ?? 0) / greatest) * barWidth;
  const line = { x1: x, y1: top - 6, x2: x, y2: bottom, stroke: dark, "stroke-dasharray": "3 3" };
  const marks = mark === undefined ? [] : [element("line", line)];
  return chart(bottom + 12, [...heading(title, unit), ...rows, ...marks]);
}

/** @param {readonly number[]} values */
function powersOf(values) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  return { low, high: Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)))) };
}

/**
 * Draws lines on two logarithmic axes: a level line means that the size does not matter.
 *
 * @param {{ title: string, xTitle: string, yTitle: string,
 *   lines: readonly { label: string, points: readonly Point[] }[] }} chart
 */
export function lineChart({ title, xTitle, yTitle, lines }) {
  const area = { left: 70, top: 50, width: 420, height: 220 };
  const { left, top } = area;
  const isShown = (/** @type {Point} */ [x, y]) => x > 0 && y > 0;
  const points = lines.flatMap((line) => line.points.filter(isShown));
  if (points.length === 0) return chart(60, [textAt(12, 22, `${title}: nothing measured`)]);
  const [xs, ys] = [powersOf(points.map(([x]) => x)), powersOf(points.map(([, y]) => y))];
  const xOf = (/** @type {number} */ x) =>
    left + ((Math.log10(x) - xs.low) / (xs.high - xs.low)) * area.width;
  const yOf = (/** @type {number} */ y) =>
    top + area.height - ((Math.log10(y) - ys.low) / (ys.high - ys.low)) * area.height;
  const shapes = heading(title, yTitle);
  for (let power = ys.low; power <= ys.high; power += 1) {
    const y = yOf(10 ** power);
    const line = { x1: left, y1: y, x2: left + area.width, y2: y, stroke: "#e5e7eb" };
    shapes.push(element("line", line));
    shapes.push(textAt(left - 6, y + 4, String(10 ** power), { "text-anchor": "end" }));
  }
  const middle = { "text-anchor": "middle" };
  for (let power = xs.low; power <= xs.high; power += 1) {
    shapes.push(textAt(xOf(10 ** power), top + area.height + 18, String(10 ** power), middle));
  }
  shapes.push(textAt(left + area.width / 2, top + area.height + 36, xTitle, middle));
  for (const [at, { label, points: all }] of lines.entries()) {
    const colour = lineColours[at % lineColours.length] ?? "#000000";
    const shown = all.filter(isShown).map(([x, y]) => [xOf(x).toFixed(1), yOf(y).toFixed(1)]);
    const path = shown.map((pair) => pair.join(",")).join(" ");
    shapes.push(element("polyline", { points: path, fill: "none", stroke: colour }));
    for (const [cx = "", cy = ""] of shown) {
      shapes.push(element("circle", { cx, cy, r: 3, fill: colour }));
    }
    shapes.push(rect({ x: 505, y: top + at * 20, width: 10, height: 10, fill: colour }));
    shapes.push(textAt(521, top + 10 + at * 20, label));
  }
  return chart(top + area.height + 48, shapes);
}
