// @ts-check
/** Builds dist/ from src/: the Lua module, then one JavaScript and one .d.ts file per source. */

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Compiles src/ into an empty `outDir`. Tests build into a folder of their own with it, so that
 * they neither trust a stale dist/ nor disturb one another.
 *
 * @param {string} outDir
 * @param {readonly string[]} [flags] more flags for tsc
 * @returns {{ status: number, output: string }}
 */
export function compile(outDir, flags = []) {
  rmSync(outDir, { recursive: true, force: true });
  return run(
    [join("node_modules", "typescript", "bin", "tsc")].concat(
      ["-p", "tsconfig.build.json", "--outDir", outDir],
      flags,
    ),
  );
}

/** @param {readonly string[]} args */
function run(args) {
  const result = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  return { status: result.status ?? 1, output: result.stdout + result.stderr };
}

function main() {
  for (const step of [
    () => run([join("scripts", "generate-lua.mjs")]),
    () => compile(join(root, "dist")),
  ]) {
    const { status, output } = step();
    process.stderr.write(output);
    if (status !== 0) {
      process.exitCode = status;
      return;
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
