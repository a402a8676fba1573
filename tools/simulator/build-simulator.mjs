// @ts-check
/**
 * Builds the simulator for its commands from the present sources. So neither a stale dist/ matters,
 * nor whether Node can strip types. Builds are kept by a hash of the sources.
 */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
// Not below node_modules, from where the compiler would take the files of another package.
const place = createHash("sha1").update(root).digest("hex").slice(0, 8);
const cache = join(tmpdir(), `holdfast-simulator-${place}`);
/** Folders of the simulator and of the code that it runs. */
const folders = ["core", "stores", "clients", "simulator"];

/** @typedef {typeof import("../../src/simulator/index.ts")} Simulator */

/**
 * Compiles the sources after `change` has edited a copy of them. Returns the folder.
 *
 * @param {(folder: string) => void} [change]
 * @param {string} [source] a folder like src/
 */
export function buildSimulator(change, source = join(root, "src")) {
  const sources = folders.flatMap((folder) => filesIn(join(source, folder)));
  const hash = createHash("sha1");
  for (const path of sources) hash.update(relative(source, path)).update(readFileSync(path));
  const built = join(cache, hash.digest("hex").slice(0, 16));
  if (change === undefined && existsSync(built)) return built;
  const work = join(cache, `work-${process.pid}-${Math.random().toString(36).slice(2)}`);
  try {
    for (const folder of folders) {
      cpSync(join(source, folder), join(work, "src", folder), { recursive: true });
    }
    writeFileSync(join(work, "package.json"), `{ "type": "module" }\n`);
    change?.(join(work, "src"));
    tsc(join(work, "src"), join(work, "out"));
    cpSync(join(work, "package.json"), join(work, "out", "package.json"));
    if (change === undefined) {
      pruneCache();
      keep(join(work, "out"), built);
      return built;
    }
    const changed = `${work}-out`;
    renameSync(join(work, "out"), changed);
    return changed;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** @param {string} from @param {string} to */
function keep(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    // Another process was faster, with the same result.
    if (!existsSync(to)) throw error;
  }
}

/** Copies the sources, because a long run builds from them repeatedly while they are edited. */
export function snapshotSources() {
  const copy = mkdtempSync(join(tmpdir(), "holdfast-sources-"));
  for (const folder of folders) {
    cpSync(join(root, "src", folder), join(copy, folder), { recursive: true });
  }
  return copy;
}

/**
 * @param {string} folder of a build
 * @returns {Promise<Simulator>}
 */
export async function loadSimulator(folder) {
  return await import(pathToFileURL(join(folder, "simulator", "index.js")).href);
}

/** @param {string} folder @param {string} out */
function tsc(folder, out) {
  const args = [join(root, "node_modules", "typescript", "bin", "tsc"), "--ignoreConfig"].concat(
    ["--outDir", out, "--rootDir", folder, "--target", "es2023", "--module", "nodenext"],
    ["--lib", "es2023,es2024.string,esnext.disposable", "--types", "node"],
    ["--typeRoots", join(root, "node_modules", "@types"), "--noCheck", "--skipLibCheck"],
    ["--rewriteRelativeImportExtensions", "--verbatimModuleSyntax"],
    [join(folder, "simulator", "index.ts")],
  );
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`the simulator does not compile:\n${stdout}${stderr}`);
}

/** Removes old builds. Another process may be using a young one. */
function pruneCache() {
  mkdirSync(cache, { recursive: true });
  const oldestMs = Date.now() - 3_600_000;
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined && stats.mtimeMs < oldestMs) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** @param {string} folder @returns {string[]} */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
