import { spawnSync } from "node:child_process";
import { join } from "node:path";

/**
 * Compiles the library that shifts a server's clock into `folder`. Returns undefined, and prints
 * the reason, if that is not possible: the run then has no clock steps.
 */
export function compileClockLibrary(root: string, folder: string): string | undefined {
  const path = join(folder, "shifted-clock.so");
  const source = join(root, "faults", "shifted-clock.c");
  if (process.platform !== "linux") {
    console.log("No clock steps: LD_PRELOAD is a Linux way.");
    return undefined;
  }
  const compiled = spawnSync("gcc", ["-O2", "-shared", "-fPIC", "-o", path, source], {
    encoding: "utf8",
  });
  if (compiled.status === 0) return path;
  const why = compiled.error === undefined ? compiled.stderr : "gcc was not found";
  console.log(`No clock steps: ${why.trim()}`);
  return undefined;
}
