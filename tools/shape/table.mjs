// @ts-check
/** Prints rows as plain text. */

/** @typedef {import("./static.mjs").Row} Row */

/**
 * Returns a table; a value beyond its goal is marked.
 *
 * @param {readonly Row[]} rows
 */
export function renderTable(rows) {
  const cells = rows.map(({ what, value, goal }) => [
    what,
    String(value),
    goal === undefined ? "" : `≤ ${goal}`,
    goal !== undefined && value > goal ? "beyond" : "",
  ]);
  const table = [["what", "now", "goal", ""], ...cells];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...table.map((line) => (line[column] ?? "").length)),
  );
  return table
    .map(([what = "", now = "", goal = "", mark = ""]) =>
      [
        what.padEnd(widths[0] ?? 0),
        now.padStart(widths[1] ?? 0),
        goal.padEnd(widths[2] ?? 0),
        mark,
      ].join("  "),
    )
    .map((line) => line.trimEnd())
    .join("\n");
}
