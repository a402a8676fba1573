/** Returns a Markdown table with even columns. */
export function tableOf(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) =>
    Math.max(3, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = widths.map((width) => "-".repeat(width));
  return [line(cells[0] ?? []), line(rule), ...cells.slice(1).map(line)].join("\n");
}
