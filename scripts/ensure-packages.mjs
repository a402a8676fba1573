// @ts-check
/**
 * Installs the packages of this project if they are missing, so that `npm start` and `npm test` are
 * enough in a fresh clone. It loads no package itself.
 */

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

main();

function main() {
  const missing = missingPackages();
  if (missing.length === 0) return;
  console.log(`Installing the packages of this project: ${missing.length} are missing`);
  // Through the shell: on Windows npm is a batch file.
  const { status } = spawnSync("npm ci", { cwd: root, stdio: "inherit", shell: true });
  process.exitCode = status ?? 1;
}

/** @returns {readonly string[]} packages that package.json names and that are not installed */
function missingPackages() {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.keys(devDependencies).filter((name) => {
    return !existsSync(join(root, "node_modules", name, "package.json"));
  });
}
