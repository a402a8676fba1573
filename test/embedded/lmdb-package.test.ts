import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { installationOf } from "../../src/stores/embedded/lmdb-package.ts";

const file = join("node_modules", "holdfast", "dist", "parts", "embedded.js");

/** Creates a folder in which packages are installed, with a package.json if it is a project. */
function place(path: string, isProject: boolean): string {
  const root = mkdtempSync(join(tmpdir(), "holdfast-place-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const folder = join(root, path);
  mkdirSync(folder, { recursive: true });
  if (isProject) writeFileSync(join(folder, "package.json"), "{}");
  return join(folder, file);
}

test("lmdb is installed where this package finds it", () => {
  expect(installationOf(place("project", true))).toBe("npm install lmdb");
  expect(installationOf(place("usr/lib", false))).toBe("npm install --global lmdb");
  const cached = "npx --package holdfast --package lmdb -- holdfast …";
  expect(installationOf(place(".npm/_npx/0123abcd", true))).toBe(cached);
  // In a clone, where the sources are in no node_modules.
  expect(installationOf("/home/me/holdfast/dist/parts/embedded.js")).toBe("npm install lmdb");
});
