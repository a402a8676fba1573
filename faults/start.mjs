// @ts-check
/**
 * Compiles this folder together with src/ into its own folder, so that neither a stale dist/ nor a
 * change made meanwhile affects the run, and starts it: `npm run faults -- --minutes 5`.
 */

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "faults", "dist", `run-${process.pid}`);

const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
const flags = ["-p", join(root, "faults", "tsconfig.json"), "--outDir", folder];
const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, ...flags], {
  encoding: "utf8",
});
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
if (status === 0) {
  const { main } = await import(pathToFileURL(join(folder, "faults", "main.js")).href);
  process.exitCode = await main(process.argv.slice(2), root);
} else {
  process.stderr.write(`${stdout}${stderr}`);
  process.exitCode = 1;
}
