import { copyFileSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleCli, compile } from "../../scripts/build.mjs";
import { projectRoot } from "./source-files.ts";

/** The project as a fresh clone has it after its build, in a folder of its own. */
export interface BuiltProject {
  readonly folder: string;
  remove(): void;
}

/** Only what runs matters here: types and declarations are the business of other tests. */
const flags = ["--noCheck", "--declaration", "false", "--isolatedDeclarations", "false"];

/** Built from these sources and not from an old dist/; `more` are folders to copy. */
export function buildProject(more: readonly string[] = []): BuiltProject {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-built-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const { status, output } = compile(join(folder, "dist"), flags);
  if (status !== 0) {
    remove();
    throw new Error(`the sources do not compile:\n${output}`);
  }
  furnish(folder);
  for (const name of more) cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  return { folder, remove };
}

/** The command line alone, bundled. */
export async function buildCommandLine(): Promise<BuiltProject> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-built-"));
  await bundleCli(join(folder, "dist"));
  furnish(folder);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function furnish(folder: string): void {
  copyFileSync(join(projectRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(projectRoot, "node_modules"), join(folder, "node_modules"), "dir");
}
