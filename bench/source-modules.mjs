// @ts-check
/** Modules of src/ that the package does not export, for measurements of single steps. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compile } from "../scripts/build.mjs";

/** @type {string | undefined} */
let folder;

/** Compiles the sources at the first call. @param {string} path of a compiled module */
export async function loadSource(path) {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), "holdfast-sources-"));
    process.once("exit", () => rmSync(made, { recursive: true, force: true }));
    const { status, output } = compile(made, ["--noCheck"]);
    if (status !== 0) throw new Error(output);
    folder = made;
  }
  return import(pathToFileURL(join(folder, path)).href);
}
