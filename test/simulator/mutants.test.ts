import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mutants } from "../../tools/simulator/mutant-list.mjs";

test.each(mutants)("the bug $name can still be planted in the sources", ({ changes }) => {
  for (const { file, from } of changes) {
    const text = readFileSync(new URL(`../../src/${file}`, import.meta.url), "utf8");
    expect(text.split(from).length - 1, `places in ${file} that read\n${from}`).toBe(1);
  }
});
