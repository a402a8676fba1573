// @ts-check
/**
 * The public surface as text, so that a change of it is visible in review: for each subpath of
 * `exports`, the declarations that a user can reach, without comments.
 *
 *   npm run api:update     writes test/api/*.d.ts
 */

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseSync } from "vite";
import { compile } from "./build.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
export const apiFolder = join(root, "test", "api");

/**
 * Compiles the declarations and returns the text of each file of test/api by its name.
 *
 * @returns {Map<string, string>}
 */
export function renderApi() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-api-"));
  try {
    const { status, output } = compile(join(folder, "dist"), ["--emitDeclarationOnly"]);
    if (status !== 0) throw new Error(`the sources do not compile:\n${output}`);
    const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    return renderSurface(exports, (path) => readFileSync(join(folder, path), "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {Record<string, string | { types: string }>} exports
 * @param {(path: string) => string} read the text of a declaration file, by its path in the package
 * @returns {Map<string, string>}
 */
export function renderSurface(exports, read) {
  /** @type {Map<string, string>} */
  const rendered = new Map();
  /** Declarations of the root, of which other files only list the names. @type {Set<string>} */
  const shown = new Set();
  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === "string") continue;
    const name = subpath === "." ? "index" : subpath.slice(2).replaceAll("/", "-");
    const modules = reach(posix.normalize(target.types), read);
    const blocks = [...modules].map(([path, text]) =>
      shown.has(path) ? `// ${path}: in index.d.ts\n` : `// ${path}\n${text}`,
    );
    if (subpath === ".") for (const path of modules.keys()) shown.add(path);
    rendered.set(`${name}.d.ts`, blocks.join("\n"));
  }
  return rendered;
}

/**
 * Returns the declaration files that `entry` leads to, itself first, then by path.
 *
 * @param {string} entry
 * @param {(path: string) => string} read
 * @returns {Map<string, string>}
 */
function reach(entry, read) {
  /** @type {Map<string, string>} */
  const found = new Map();
  const pending = [entry];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (found.has(path)) continue;
    const { text, imports } = readDeclarations(path, read(path));
    found.set(path, text);
    for (const specifier of imports) {
      const target = posix.join(posix.dirname(path), specifier);
      pending.push(target.replace(/(\.d)?\.[jt]s$/, ".d.ts"));
    }
  }
  const [first, ...others] = found;
  return new Map(
    first === undefined ? [] : [first, ...others.sort(([a], [b]) => (a < b ? -1 : 1))],
  );
}

/**
 * @param {string} path
 * @param {string} text
 */
function readDeclarations(path, text) {
  const { comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  let bare = text;
  for (const { start, end } of comments.toReversed()) bare = bare.slice(0, start) + bare.slice(end);
  const lines = bare.split("\n").filter((line) => line.trim() !== "");
  const specifiers = bare.matchAll(/(?:\bfrom|\bimport\(|\bimport)\s*["'](\.[^"']+)["']/g);
  return {
    text: `${lines.join("\n")}\n`,
    imports: [...specifiers].map((match) => match[1] ?? ""),
  };
}

function main() {
  const rendered = renderApi();
  mkdirSync(apiFolder, { recursive: true });
  for (const old of readdirSync(apiFolder)) {
    if (!rendered.has(old)) rmSync(join(apiFolder, old));
  }
  for (const [name, text] of rendered) writeFileSync(join(apiFolder, name), text);
  console.log(`wrote ${rendered.size} files to ${join("test", "api")}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
