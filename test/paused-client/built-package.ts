import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../../scripts/build.mjs";
import { projectRoot } from "../support/source-files.ts";

/** The package as plain Node runs it, in a folder of its own. */
export interface BuiltPackage {
  readonly folder: string;
  remove(): void;
}

/** Only what runs matters here: types and declarations are the business of other tests. */
const flags = ["--noCheck", "--declaration", "false", "--isolatedDeclarations", "false"];

export function buildPackage(): BuiltPackage {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-paused-client-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const { status, output } = compile(join(folder, "dist"), flags);
  if (status !== 0) {
    remove();
    throw new Error(`the sources do not compile:\n${output}`);
  }
  copyFileSync(join(projectRoot, "package.json"), join(folder, "package.json"));
  return { folder, remove };
}
