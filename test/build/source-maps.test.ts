import { SourceMap } from "node:module";
import { expect, test } from "vitest";
import { mapLines } from "../../scripts/source-maps.mjs";

/** Columns of `a();b();c=1;d()`. The first two calls are on one line of the source. */
const code = "a();b();c=1;d()";
const full = {
  file: "x.js",
  sources: ["../src/x.ts"],
  names: ["a"],
  sourcesContent: ["…"],
  mappings: "AAAAA,IAAI,IACJ,IACA",
};

function lineAt(map: ReturnType<typeof mapLines>, column: number): number | undefined {
  const sources = ["../src/x.ts"];
  const payload = { ...map, sources, file: "x.js", sourcesContent: [], sourceRoot: "" };
  const entry = new SourceMap(payload).findEntry(0, column);
  return "originalLine" in entry ? entry.originalLine : undefined;
}

test("each call is mapped to its line of the source", () => {
  const map = mapLines(code, full);
  expect([0, 4, 12].map((column) => lineAt(map, column))).toEqual([0, 0, 2]);
});

test("a line that cannot be in a stack trace, names and texts are left out", () => {
  const map = mapLines(code, full);
  expect(map).toEqual({
    version: 3,
    file: "x.js",
    sources: ["../src/x.ts"],
    names: [],
    mappings: "AAAA,YAEA",
  });
});

test("the folder that all sources share is written once", () => {
  const sources = ["../src/core/a.ts", "../src/core/lease/b.ts", "../src/corner/c.ts"];
  const map = mapLines(code, { ...full, sources });
  expect(map).toMatchObject({
    sourceRoot: "../src/",
    sources: ["core/a.ts", "core/lease/b.ts", "corner/c.ts"],
  });
});
