// @ts-check
/** Measures the import graph: folder cycles, loose files, small files with one importer. */

import { posix } from "node:path";
import { linesOf, parse, visit } from "./sources.mjs";

/** @typedef {import("./sources.mjs").SourceFile} SourceFile */
/** @typedef {import("./sources.mjs").Node} Node */
/** @typedef {{ from: string, to: string, typeOnly: boolean }} Import between two files given */

const linesMax = 60;

/**
 * Returns all imports and re-exports between the given files, with dynamic ones.
 *
 * @param {readonly SourceFile[]} files
 * @returns {Import[]}
 */
export function importsBetween(files) {
  const known = new Set(files.map(({ path }) => path));
  /** @type {Import[]} */
  const imports = [];
  for (const file of files) {
    visit(parse(file).program, (node) => {
      const specifier = node["source"]?.value;
      if (typeof specifier !== "string" || !specifier.startsWith(".")) return;
      const to = posix.join(posix.dirname(file.path), specifier);
      if (known.has(to)) imports.push({ from: file.path, to, typeOnly: namesOnlyTypes(node) });
    });
  }
  return imports;
}

/** True if nothing is left of the import at run time. @param {Node} node */
function namesOnlyTypes(node) {
  if (node.type === "TSImportType") return true;
  if (node["importKind"] === "type" || node["exportKind"] === "type") return true;
  /** @type {Node[]} */
  const names = node["specifiers"] ?? [];
  return (
    names.length > 0 &&
    names.every((name) => name["importKind"] === "type" || name["exportKind"] === "type")
  );
}

/**
 * Returns the groups of folders directly below `base` that import one another in a circle. The
 * files directly in `base` count as one folder, named ".".
 *
 * @param {readonly Import[]} imports
 * @param {string} base
 * @returns {string[][]}
 */
export function folderCycles(imports, base) {
  /** @type {Map<string, Set<string>>} */
  const edges = new Map();
  for (const { from, to } of imports) {
    if (!from.startsWith(`${base}/`) || !to.startsWith(`${base}/`)) continue;
    const [a, b] = [folderBelow(base, from), folderBelow(base, to)];
    edges.set(a, (edges.get(a) ?? new Set()).add(b));
  }
  const reached = new Map([...edges.keys()].map((folder) => [folder, reachable(edges, folder)]));
  /** @type {Map<string, string[]>} */
  const cycles = new Map();
  for (const [folder, others] of reached) {
    const circle = [...others].filter((other) => reached.get(other)?.has(folder)).sort();
    // A folder reaches itself through its own files, so a circle has at least two folders.
    if (circle.length > 1 && circle.includes(folder)) cycles.set(circle.join(" "), circle);
  }
  return [...cycles.values()];
}

/** @param {string} base @param {string} path */
function folderBelow(base, path) {
  const [first, ...rest] = path.slice(base.length + 1).split("/");
  return rest.length === 0 ? "." : (first ?? ".");
}

/**
 * Returns all nodes that can be reached from `start` in one step or more.
 *
 * @template T
 * @param {ReadonlyMap<T, ReadonlySet<T>>} edges
 * @param {T} start
 * @returns {Set<T>}
 */
export function reachable(edges, start) {
  /** @type {Set<T>} */
  const reached = new Set();
  const open = [...(edges.get(start) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    open.push(...(edges.get(next) ?? []));
  }
  return reached;
}

/**
 * Returns the TypeScript files directly in `base`.
 *
 * @param {readonly SourceFile[]} files
 * @param {string} base
 */
export function looseFiles(files, base) {
  const paths = files.map(({ path }) => path);
  return paths.filter((path) => posix.dirname(path) === base && path.endsWith(".ts"));
}

/**
 * Returns the files of at most 60 lines that exactly one other file imports.
 *
 * @param {readonly SourceFile[]} files
 * @param {readonly Import[]} imports
 */
export function smallFilesWithOneImporter(files, imports) {
  /** @type {Map<string, Set<string>>} */
  const importers = new Map();
  for (const { from, to } of imports) {
    importers.set(to, (importers.get(to) ?? new Set()).add(from));
  }
  return files
    .filter(({ path, text }) => linesOf(text).length <= linesMax && importers.get(path)?.size === 1)
    .map(({ path }) => path);
}
