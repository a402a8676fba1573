// @ts-check
/** Plots as SVG: bars that are compared with one of them, and lines over powers of ten. */

const font = 'font-family="system-ui, sans-serif"';
const colours = { own: "#2563eb", raw: "#6b7280", peer: "#d97706" };
const lineColours = ["#6b7280", "#2563eb", "#0d9488", "#d97706"];

/** @typedef {{ label: string, value: number, kind: keyof typeof colours, text: string }} Bar */

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** @param {number} width @param {number} height @param {readonly string[]} parts */
function svg(width, height, parts) {
  const open = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" `;
  const size = `width="${width}" height="${height}">`;
  const ground = `<rect width="${width}" height="${height}" fill="#ffffff"/>`;
  return `${open}${size}\n${[ground, ...parts].join("\n")}\n</svg>\n`;
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {string} [more] attributes
 */
function textAt(x, y, text, more = "") {
  const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}"`;
  return `<text ${place} ${font} font-size="12" fill="#111827" ${more}>${escaped(text)}</text>`;
}

/** @param {{ title: string, unit: string, bars: readonly Bar[], mark?: number }} chart */
export function barChart({ title, unit, bars, mark }) {
  const [left, barWidth, rowHeight, top] = [230, 380, 22, 56];
  const greatest = Math.max(mark ?? 0, ...bars.map(({ value }) => value)) || 1;
  const rows = bars.flatMap(({ label, value, kind, text }, at) => {
    const y = top + at * rowHeight;
    const width = (value / greatest) * barWidth;
    const size = `width="${width.toFixed(1)}" height="${rowHeight - 6}"`;
    return [
      textAt(left - 8, y + 12, label, 'text-anchor="end"'),
      `<rect x="${left}" y="${y}" ${size} fill="${colours[kind]}"/>`,
      textAt(left + width + 6, y + 12, text),
    ];
  });
  const bottom = top + bars.length * rowHeight;
  const at = left + ((mark ?? 0) / greatest) * barWidth;
  const line =
    mark === undefined
      ? []
      : [
          `<line x1="${at.toFixed(1)}" y1="${top - 6}" x2="${at.toFixed(1)}" y2="${bottom}" ` +
            'stroke="#111827" stroke-dasharray="3 3"/>',
        ];
  const head = [textAt(12, 22, title, 'font-weight="600"'), textAt(12, 40, unit)];
  return svg(700, bottom + 12, [...head, ...rows, ...line]);
}

/**
 * Draws lines on two logarithmic axes: a level line means that the size does not matter.
 *
 * @param {{ title: string, xTitle: string, yTitle: string,
 *   lines: readonly { label: string, points: readonly (readonly [number, number])[] }[] }} chart
 */
export function lineChart({ title, xTitle, yTitle, lines }) {
  const [left, top, width, height] = [70, 50, 420, 220];
  const points = lines.flatMap((line) => line.points.filter(([x, y]) => x > 0 && y > 0));
  const powers = (/** @type {readonly number[]} */ values) => ({
    low: Math.floor(Math.log10(Math.min(...values))),
    high: Math.max(
      Math.floor(Math.log10(Math.min(...values))) + 1,
      Math.ceil(Math.log10(Math.max(...values))),
    ),
  });
  if (points.length === 0) return svg(700, 60, [textAt(12, 22, `${title}: nothing measured`)]);
  const [xs, ys] = [powers(points.map(([x]) => x)), powers(points.map(([, y]) => y))];
  const xOf = (/** @type {number} */ x) =>
    left + ((Math.log10(x) - xs.low) / (xs.high - xs.low)) * width;
  const yOf = (/** @type {number} */ y) =>
    top + height - ((Math.log10(y) - ys.low) / (ys.high - ys.low)) * height;
  const parts = [textAt(12, 22, title, 'font-weight="600"'), textAt(12, 40, yTitle)];
  for (let power = ys.low; power <= ys.high; power += 1) {
    const y = yOf(10 ** power).toFixed(1);
    parts.push(`<line x1="${left}" y1="${y}" x2="${left + width}" y2="${y}" stroke="#e5e7eb"/>`);
    parts.push(textAt(left - 6, Number(y) + 4, String(10 ** power), 'text-anchor="end"'));
  }
  for (let power = xs.low; power <= xs.high; power += 1) {
    const x = xOf(10 ** power);
    parts.push(textAt(x, top + height + 18, String(10 ** power), 'text-anchor="middle"'));
  }
  parts.push(textAt(left + width / 2, top + height + 36, xTitle, 'text-anchor="middle"'));
  for (const [at, { label, points: all }] of lines.entries()) {
    const colour = lineColours[at % lineColours.length] ?? "#000000";
    const shown = all.filter(([x, y]) => x > 0 && y > 0);
    const path = shown.map(([x, y]) => `${xOf(x).toFixed(1)},${yOf(y).toFixed(1)}`);
    parts.push(`<polyline points="${path.join(" ")}" fill="none" stroke="${colour}"/>`);
    for (const pair of path) {
      const [x, y] = pair.split(",");
      parts.push(`<circle cx="${x}" cy="${y}" r="3" fill="${colour}"/>`);
    }
    parts.push(`<rect x="505" y="${top + at * 20}" width="10" height="10" fill="${colour}"/>`);
    parts.push(textAt(521, top + 10 + at * 20, label));
  }
  return svg(700, top + height + 48, parts);
}
