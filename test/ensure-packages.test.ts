import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { projectRoot } from "./support/source-files.ts";

interface Clone {
  readonly folder: string;
  /** Runs a script of package.json, with an `npm ci` that only notes its call. */
  readonly ensure: () => { status: number | null; stdout: string };
}

/** A fresh clone, without its packages, as far as the script needs it. */
function freshClone(): Clone {
  const root = mkdtempSync(join(tmpdir(), "holdfast-clone-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const folder = join(root, "holdfast");
  for (const name of ["package.json", join("scripts", "ensure-packages.mjs")]) {
    cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  }
  const bin = join(root, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "npm"), `#!/bin/sh\necho "$@ in $PWD" > ${root}/npm\n`, { mode: 0o755 });
  const path = [bin, dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter);
  return {
    folder,
    ensure: () => {
      const script = join(folder, "scripts", "ensure-packages.mjs");
      const { status, stdout } = spawnSync(process.execPath, [script], {
        env: { PATH: path },
        encoding: "utf8",
      });
      const called = join(root, "npm");
      return { status, stdout: stdout + (existsSync(called) ? readFileSync(called, "utf8") : "") };
    },
  };
}

test("a fresh clone installs its packages before it builds", () => {
  const { folder, ensure } = freshClone();
  const { status, stdout } = ensure();
  expect(status).toBe(0);
  expect(stdout).toMatch(/^Installing the packages of this project: \d+ are missing\n/);
  expect(stdout).toContain(`ci in ${folder}\n`);
});

test("a clone that has its packages installs nothing", () => {
  const { folder, ensure } = freshClone();
  const { devDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    devDependencies: Record<string, string>;
  };
  for (const name of Object.keys(devDependencies)) {
    mkdirSync(join(folder, "node_modules", name), { recursive: true });
    writeFileSync(join(folder, "node_modules", name, "package.json"), "{}");
  }
  expect(ensure()).toEqual({ status: 0, stdout: "" });
});

test("npm start, npm test and npm pack begin with it", () => {
  const { scripts } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  for (const name of ["start", "test", "prepack"]) {
    expect(scripts[name]).toMatch(/^node scripts\/ensure-packages\.mjs && /);
  }
});
