// @ts-check
/** Turns the recording of one call into rows of the table. */

import { importsBetween, reachable } from "./imports.mjs";

/** @typedef {import("./recorder.mjs").Recording} Recording */
/** @typedef {import("./sources.mjs").SourceFile} SourceFile */
/** @typedef {import("./static.mjs").Row} Row */
/** @typedef {{ from: string, to: string, count: number }} Transfer calls of one file by another */

/**
 * @param {string} operation
 * @param {Recording} recording
 * @param {readonly SourceFile[]} files by the names that the recording has
 * @param {{ files?: number, pairs?: number }} goals
 * @returns {Row[]}
 */
export function transferRows(operation, recording, files, goals) {
  const transfers = transfersOf(recording);
  const up = callsUp(transfers, files);
  return [
    row(
      `files of one ${operation}`,
      recording.files.size,
      [...recording.files].map(source),
      goals.files,
    ),
    row(`transfers of one ${operation} (caller, callee)`, transfers.length, [], goals.pairs),
    row(`calls between files of one ${operation}`, sum(transfers), transfers.map(asText)),
    row(
      `calls of one ${operation} up to a file that imports the caller`,
      sum(up),
      up.map(asText),
      0,
    ),
    row(`calls of one ${operation} by the user, a promise, the event loop`, recording.entries, []),
  ];
}

/**
 * @param {string} what
 * @param {number} value
 * @param {readonly string[]} details
 * @param {number} [goal]
 * @returns {Row}
 */
function row(what, value, details, goal) {
  return {
    what,
    value,
    ...(goal === undefined ? {} : { goal }),
    ...(details.length === 0 ? {} : { details }),
  };
}

/** @param {Recording} recording */
export function callCount(recording) {
  return recording.entries + sum(transfersOf(recording));
}

/** @param {Recording} recording @returns {Transfer[]} */
function transfersOf({ calls }) {
  return [...calls].flatMap(([from, callees]) =>
    [...callees].map(([to, count]) => ({ from, to, count })),
  );
}

/** @param {readonly Transfer[]} transfers */
function sum(transfers) {
  return transfers.reduce((total, { count }) => total + count, 0);
}

/** @param {Transfer} transfer */
function asText({ from, to, count }) {
  return `${count} × ${source(from)} → ${source(to)}`;
}

/** Names the source of a compiled file. @param {string} path */
function source(path) {
  return path.replace(/\.js$/, ".ts");
}

/**
 * Returns the transfers to a file that imports its caller, directly or through others: the callee
 * created the caller, or an owner of it, and is called back.
 *
 * @param {readonly Transfer[]} transfers
 * @param {readonly SourceFile[]} files compiled, so that imports of types are gone
 */
function callsUp(transfers, files) {
  /** @type {Map<string, Set<string>>} */
  const edges = new Map();
  for (const { from, to } of importsBetween(files)) {
    edges.set(from, (edges.get(from) ?? new Set()).add(to));
  }
  return transfers.filter(({ from, to }) => reachable(edges, to).has(from));
}
