import { describe, expect, test } from "vitest";
import { readProject } from "../support/source-files.ts";
import { deadLinks } from "./dead-links.ts";

/** These plant dead links themselves. */
const planters = new Set(["test/tidy.test.ts", "test/docs/links.test.ts"]);

describe("links and anchors", () => {
  test("of all pages, and of pages that code names, lead somewhere", () => {
    const found = deadLinks(readProject());
    expect(found.filter((complaint) => !planters.has(complaint.split(":")[0] ?? ""))).toEqual([]);
  });

  test.each([
    ["a missing page", "[a](docs/gone.md)", "README.md:1: docs/gone.md does not exist"],
    [
      "a missing heading",
      "\n[a](docs/a.md#gone)",
      "README.md:2: docs/a.md has no heading for #gone",
    ],
    ["an anchor of its own", "# A\n[a](#b)", "README.md:2: README.md has no heading for #b"],
    [
      "a heading in code",
      "```sh\n# B\n```\n[a](#b)",
      "README.md:4: README.md has no heading for #b",
    ],
    ["a reference", "[a]\n\n[a]: ./gone.md", "README.md:3: gone.md does not exist"],
    ["an image", '<img src="docs/a.png">', "README.md:1: docs/a.png does not exist"],
    [
      "a file shown as code",
      "run `node bench/gone.mjs`",
      "README.md:1: bench/gone.mjs does not exist",
    ],
  ])("finds %s", (_what, text, complaint) => {
    expect(deadLinks([{ path: "README.md", text }, page])).toEqual([complaint]);
  });

  test("finds a page that code names, and its anchor", () => {
    const text = 'throw new Error("see docs/gone.md");\n// docs/a.md#gone\n';
    expect(deadLinks([{ path: "src/a.ts", text }, page])).toEqual([
      "src/a.ts:1: docs/gone.md does not exist",
      "src/a.ts:2: docs/a.md has no heading for #gone",
    ]);
  });

  test("accepts links that lead somewhere", () => {
    const text = [
      "[a](docs/a.md#what-node-1-says-twice-and-so-on) [b](docs/a.md#again-1) [c](docs/)",
      "[d](https://example.com/x#y) `[e](gone.md)` `docs/a.md` [f](#here)",
      "## `Here`",
    ].join("\n");
    const code = { path: "src/a.ts", text: "// docs/a.md#again, ./docs/x.md, notdocs/y.md" };
    expect(deadLinks([{ path: "README.md", text }, page, code])).toEqual([]);
  });
});

const page = {
  path: "docs/a.md",
  text: "# What `node-1` says, twice: and so on\n\n## Again\n\n## Again\n",
};
