// @ts-check
/**
 * Builds dist/ from src/: the Lua module, then for each entry of `exports` one bundle and one
 * declaration file, the command line with the packages that it uses, and the parts they share.
 */

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundle, libraryEntries } from "./bundle.mjs";
import { rollUpTypes } from "./roll-up-types.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Compiles src/ into an empty `outDir`, one JavaScript and one declaration file per source. Tests
 * use it with their own folders, so that they do not depend on a stale dist/ and do not disturb
 * one another.
 *
 * @param {string} outDir
 * @param {readonly string[]} [flags] more flags for tsc
 * @returns {{ status: number, output: string }}
 */
export function compile(outDir, flags = []) {
  rmSync(outDir, { recursive: true, force: true });
  const args = compilerArguments(outDir, flags);
  const result = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  return { status: result.status ?? 1, output: result.stdout + result.stderr };
}

/**
 * Bundles all programs into `outDir`, without types: the library and the command line.
 *
 * @param {string} outDir
 */
export async function buildPrograms(outDir) {
  replaceFiles(outDir, await bundle());
}

/**
 * Builds the whole published package into `outDir`. Throws with the compiler's output if the
 * sources do not compile.
 *
 * @param {string} outDir
 */
export async function buildPackage(outDir) {
  const [programs, types] = await Promise.all([bundle(), declarations()]);
  replaceFiles(outDir, new Map([...programs, ...types]));
}

/** @returns {Promise<Map<string, string>>} declaration files by path in dist/ */
async function declarations() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-types-"));
  try {
    await run(compilerArguments(folder, ["--emitDeclarationOnly"]));
    const entries = [...libraryEntries().keys()].map((name) => `./${name}.d.ts`);
    const read = (/** @type {string} */ path) => readFileSync(join(folder, path), "utf8");
    const texts = rollUpTypes(entries, "./parts/types.d.ts", read);
    return new Map([...texts].map(([path, text]) => [posix.normalize(path), text]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Makes `files` the content of a folder. Each file is replaced atomically, so that concurrent
 * builds of the same sources, and programs that start from there, always find complete files.
 *
 * @param {string} outDir
 * @param {ReadonlyMap<string, string>} files texts by path
 */
function replaceFiles(outDir, files) {
  mkdirSync(outDir, { recursive: true });
  const staging = mkdtempSync(join(outDir, ".next-"));
  for (const [path, text] of files) {
    const [from, to] = [join(staging, path), join(outDir, path)];
    for (const file of [from, to]) mkdirSync(dirname(file), { recursive: true });
    writeFileSync(from, text);
    renameSync(from, to);
  }
  rmSync(staging, { recursive: true, force: true });
  removeOthers(outDir, new Set(files.keys()), "");
}

/** Age of a staging folder that a killed build has left behind. No build takes that long. */
const abandonedMs = 600_000;

/**
 * @param {string} outDir
 * @param {ReadonlySet<string>} wanted paths of files
 * @param {string} folder path in `outDir`, "" or with a slash at its end
 */
function removeOthers(outDir, wanted, folder) {
  for (const entry of readdirSync(join(outDir, folder), { withFileTypes: true })) {
    const path = `${folder}${entry.name}`;
    const isStaging = entry.name.startsWith(".next-");
    if (isStaging && Date.now() - mtimeMs(join(outDir, path)) < abandonedMs) continue;
    const isKept = [...wanted].some((file) => file === path || file.startsWith(`${path}/`));
    if (!isKept) rmSync(join(outDir, path), { recursive: true, force: true });
    else if (entry.isDirectory()) removeOthers(outDir, wanted, `${path}/`);
  }
}

/** @param {string} path */
function mtimeMs(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/**
 * @param {string} outDir
 * @param {readonly string[]} flags
 */
function compilerArguments(outDir, flags) {
  const tsc = join("node_modules", "typescript", "bin", "tsc");
  return [tsc, "-p", "tsconfig.build.json", "--outDir", outDir, ...flags];
}

/** @param {readonly string[]} args of Node.js; rejects with what was printed if it fails */
function run(args) {
  const child = spawn(process.execPath, args, { cwd: root });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => (output += String(data)));
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status) => {
      if (status === 0) resolve(undefined);
      else reject(new Error(`${args.slice(0, 3).join(" ")} failed:\n${output}`));
    });
  });
}

async function main() {
  await run([join("scripts", "generate-lua.mjs")]);
  await buildPackage(join(root, "dist"));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
