import { stripVTControlCharacters } from "node:util";
import { createColors } from "picocolors";
import { describe, expect, test } from "vitest";
import type { Output } from "../../src/cli/output.ts";
import { renderFrame } from "../../src/cli/watch/screen.ts";
import type { Sighting } from "../../src/cli/watch/sightings.ts";

const colors = createColors(true);
const grey = colors.dim("|").split("|")[0] ?? "";

function sighting(resource: string): Sighting {
  const seen = {
    resource,
    state: "held" as const,
    label: "worker-with-a-long-name:24980",
    fence: 1_795_135_742_667_000n,
    remainingMs: 8_000,
    waiters: 2,
    nodes: [],
  };
  return { seen, sinceMs: 0, atLeast: false, fullMs: 10_000 };
}

/** Returns the lines of a screen of this width. */
function screen(columns: number, trouble?: string): readonly string[] {
  const output = { colors, columns, lineColumns: columns } as Output;
  const sightings = [sighting("nightly-report"), sighting("account:7/with/a/rather/long/name")];
  const store = "redlock 127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:7003";
  return renderFrame({ store, sightings, nowMs: 5_000, trouble, isOnce: false }, output, 24);
}

const trouble =
  "could not list the locks: needs 2 of 3 nodes; 127.0.0.1:7001: failed (the ioredis client is " +
  "not connected (reconnecting: connect ECONNREFUSED 127.0.0.1:7001))";

describe.each([60, 72, 80, 120])("the screen of watch at %d columns", (columns) => {
  test("has no line that is wider, with and without trouble", () => {
    for (const lines of [screen(columns), screen(columns, trouble)]) {
      const plain = lines.map(stripVTControlCharacters);
      expect(plain.filter((line) => line.length > columns)).toEqual([]);
      expect(plain.join("\n")).toContain("nightly-report");
    }
  });

  test("breaks a long reason between words, and shows its end", () => {
    const lines = screen(columns, trouble).map(stripVTControlCharacters);
    const start = lines.findIndex((line) => line.startsWith("could not list"));
    const reason = lines.slice(start).join(" ");
    expect(start).toBeGreaterThan(0);
    expect(reason).toBe(trouble);
  });
});

describe("rows of watch that are not up to date", () => {
  test("are grey, and nothing else in them has a colour", () => {
    const rows = screen(100, trouble).filter((line) => /RESOURCE|report|account/.test(line));
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      expect(row.startsWith(grey)).toBe(true);
      expect(stripVTControlCharacters(row)).toBe(row.slice(grey.length, row.lastIndexOf("\u001B")));
    }
  });

  test("have their colours while the store answers", () => {
    const rows = screen(100).filter((line) => /report|account/.test(line));
    for (const row of rows) expect(row.startsWith(grey)).toBe(false);
  });
});
