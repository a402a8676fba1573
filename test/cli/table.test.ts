import { stripVTControlCharacters } from "node:util";
import { createColors } from "picocolors";
import { expect, test } from "vitest";
import { renderTable } from "../../src/cli/table.ts";

const colors = createColors(true);
const columns = [
  { title: "RESOURCE", elastic: true },
  { title: "LEFT", align: "right" },
  { title: "LABEL" },
] as const;

function plain(rows: readonly (readonly string[])[], width: number): string[] {
  return stripVTControlCharacters(renderTable(columns, rows, { columns: width, colors })).split(
    "\n",
  );
}

test("columns are as wide as their cells, and numbers are aligned to the right", () => {
  expect(
    plain(
      [
        ["a", "3 s", "report"],
        ["longer name", "12.5 s", ""],
      ],
      80,
    ),
  ).toEqual(["RESOURCE       LEFT  LABEL", "a               3 s  report", "longer name  12.5 s"]);
});

test("a terminal that is too narrow cuts only the column that may be cut", () => {
  expect(plain([["resource/with/a/long/name", "3 s", "report"]], 30)).toEqual([
    "RESOURCE        LEFT  LABEL",
    "resource/with…   3 s  report",
  ]);
});

test("a wide character counts as two columns", () => {
  expect(
    plain(
      [
        ["漢字漢字漢字漢字", "3 s", "👍"],
        ["a", "1 s", "b"],
      ],
      27,
    ),
  ).toEqual(["RESOURCE      LEFT  LABEL", "漢字漢字漢…    3 s  👍", "a              1 s  b"]);
});

test("a colour is ended after a cut", () => {
  const text = renderTable(columns, [[colors.red("resource/with/a/name"), "3 s", "x"]], {
    columns: 26,
    colors,
  });
  expect(text).toContain(`…${colors.red("").slice(-5)}`);
});

test("a terminal too narrow for a cut leaves out columns with a `drop`, the greatest first", () => {
  const droppable = [...columns, { title: "AGE", drop: 1 }, { title: "WAITERS", drop: 2 }] as const;
  const titles = (width: number): string[] => {
    const row = ["resource/with/a/long/name", "3 s", "report", "12 s", "5"];
    const text = renderTable(droppable, [row], { columns: width, colors });
    return (stripVTControlCharacters(text).split("\n")[0] ?? "").split(/ +/);
  };
  expect(titles(80)).toEqual(["RESOURCE", "LEFT", "LABEL", "AGE", "WAITERS"]);
  expect(titles(46)).toEqual(["RESOURCE", "LEFT", "LABEL", "AGE"]);
  expect(titles(37)).toEqual(["RESOURCE", "LEFT", "LABEL"]);
  expect(titles(10)).toEqual(["RESOURCE", "LEFT", "LABEL"]);
});
