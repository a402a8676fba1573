import { copyFileSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPrograms } from "../../scripts/build.mjs";
import { projectRoot } from "./source-files.ts";

/** A copy of the project as a fresh clone has it after its build. */
export interface BuiltProject {
  readonly folder: string;
  remove(): void;
}

/** Builds from these sources into another folder, without types. `more` are folders to copy. */
export async function buildProject(more: readonly string[] = []): Promise<BuiltProject> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-built-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    await buildPrograms(join(folder, "dist"));
  } catch (error) {
    remove();
    throw error;
  }
  furnish(folder);
  for (const name of more) cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  return { folder, remove };
}

function furnish(folder: string): void {
  copyFileSync(join(projectRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(projectRoot, "node_modules"), join(folder, "node_modules"), "dir");
}
