import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPrograms } from "../../scripts/build.mjs";
import { projectRoot } from "../support/source-files.ts";

/** The package as plain Node runs it, in a folder of its own. */
export interface BuiltPackage {
  readonly folder: string;
  remove(): void;
}

export async function buildPackage(): Promise<BuiltPackage> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-paused-client-"));
  await buildPrograms(join(folder, "dist"));
  copyFileSync(join(projectRoot, "package.json"), join(folder, "package.json"));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
