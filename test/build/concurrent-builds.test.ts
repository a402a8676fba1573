import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { buildPrograms } from "../../scripts/build.mjs";

function filesIn(folder: string): Map<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
  return new Map(paths.toSorted().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

test("builds at the same time leave the same complete files, and none of an older build", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-builds-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "core"));
  writeFileSync(join(folder, "core", "old.js"), "// from an older build\n");
  writeFileSync(join(folder, "index.js"), "// from an older build\n");
  await buildPrograms(folder);
  const once = filesIn(folder);
  expect(existsSync(join(folder, "core"))).toBe(false);
  expect(once.get("index.js")).toContain("createLocks");

  const building = Promise.all([buildPrograms(folder), buildPrograms(folder)]);
  const builds = { running: true };
  void building.finally(() => (builds.running = false));
  while (builds.running) {
    for (const [path, text] of once) expect(readFileSync(join(folder, path), "utf8")).toBe(text);
    await turn();
  }
  await building;
  expect(filesIn(folder)).toEqual(once);
});
