// @ts-check
/** Reads the files of a project, and the parts of their syntax that the measurements need. */

import { readFileSync, readdirSync } from "node:fs";
import { join, posix } from "node:path";
import { parseSync } from "vite";

/** @typedef {{ path: string, text: string }} SourceFile with its path from the root, with `/` */
/** @typedef {{ type: string, start: number, end: number, [field: string]: any }} Node */

const ignored = new Set([".git", "coverage", "dist", "node_modules"]);

/**
 * Returns the files below `root` whose path `wanted` accepts, in a stable order.
 *
 * @param {string} root
 * @param {(path: string) => boolean} wanted
 * @returns {SourceFile[]}
 */
export function readFiles(root, wanted) {
  return pathsBelow(root, "")
    .filter(wanted)
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** @param {string} root @param {string} folder @returns {string[]} */
function pathsBelow(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => !ignored.has(entry.name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory()) return pathsBelow(root, path);
      return entry.isFile() ? [path] : [];
    });
}

/**
 * Returns the tree and the comments. Throws for a file that does not parse: a skipped file must
 * not make a measurement look better.
 *
 * @param {SourceFile} file
 * @returns {{ program: Node, comments: readonly { value: string }[] }}
 */
export function parse({ path, text }) {
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  return { program, comments };
}

/**
 * Returns the nodes directly below `node`, in the order of the source.
 *
 * @param {Node} node
 * @returns {Node[]}
 */
export function childrenOf(node) {
  return Object.values(node).flat().filter(isNode);
}

/** @param {unknown} value @returns {value is Node} */
function isNode(value) {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

/**
 * Calls `see` for `node` and all nodes below it.
 *
 * @param {Node} node
 * @param {(node: Node) => void} see
 */
export function visit(node, see) {
  see(node);
  for (const child of childrenOf(node)) visit(child, see);
}

/** @param {string} text */
export function linesOf(text) {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
