// @ts-check
/**
 * Adds calls of the recorder to compiled JavaScript: at the start and the end of each function,
 * and around each await and yield. The calls neither add a turn of the event loop nor change a
 * result.
 *
 * Limit: the default value of a parameter is computed before its function is entered, so a call in
 * it counts as a call by the caller.
 */

import { childrenOf, parse } from "./sources.mjs";

/** @typedef {import("./sources.mjs").Node} Node */
/** @typedef {{ at: number, text: string, closes: boolean }} Insertion */

const recorder = new URL("recorder.mjs", import.meta.url).href;
// "$" keeps these names apart from those of the sources.
const header = `import * as $recorder from ${JSON.stringify(recorder)};\n`;

/**
 * Returns the text of the file with the calls added. The file is recorded by its path.
 *
 * @param {import("./sources.mjs").SourceFile} file JavaScript without class fields
 */
export function instrument(file) {
  /** @type {Insertion[]} */
  const insertions = [];
  collect(parse(file).program, `$recorder.enter(${JSON.stringify(file.path)})`, insertions);
  // If one node ends where another starts, the end comes first; otherwise in the order of the walk.
  const sorted = insertions.toSorted((a, b) => a.at - b.at || Number(b.closes) - Number(a.closes));
  let text = "";
  let copied = 0;
  for (const { at, text: inserted } of sorted) {
    text += file.text.slice(copied, at) + inserted;
    copied = at;
  }
  return header + text + file.text.slice(copied);
}

/** @param {Node} node @param {string} enter @param {Insertion[]} insertions */
function collect(node, enter, insertions) {
  const wraps = wrapsOf(node, enter);
  for (const { start, before } of wraps) {
    insertions.push({ at: start, text: before, closes: false });
  }
  for (const child of childrenOf(node)) collect(child, enter, insertions);
  for (const { end, after } of wraps.toReversed()) {
    insertions.push({ at: end, text: after, closes: true });
  }
}

/**
 * Returns the ranges in `node` to put text around, the outer ones first.
 *
 * @param {Node} node
 * @param {string} enter
 * @returns {{ start: number, end: number, before: string, after: string }[]}
 */
function wrapsOf(node, enter) {
  const { start, end, type } = node;
  /** @type {Node | null | undefined} */
  const body = node["body"];
  const inBody = { start: (body?.start ?? 0) + 1, end: (body?.end ?? 0) - 1 };
  const open = `const $frame = ${enter}; try { `;
  const close = ` } finally { $recorder.leave($frame); }`;
  switch (type) {
    case "FunctionDeclaration":
    case "FunctionExpression":
      return [{ ...inBody, before: open, after: close }];
    case "ArrowFunctionExpression":
      if (body?.type === "BlockStatement") return [{ ...inBody, before: open, after: close }];
      return [
        {
          start: body?.start ?? 0,
          end: body?.end ?? 0,
          before: `{ ${open}return (`,
          after: `);${close} }`,
        },
      ];
    case "AwaitExpression":
    case "YieldExpression": {
      /** @type {Node | null} */
      const argument = node["argument"];
      const goesOn = { start, end, before: "$recorder.resume($frame, ", after: ")" };
      if (argument === null) return [goesOn];
      return [
        goesOn,
        {
          start: argument.start,
          end: argument.end,
          before: "$recorder.pause($frame, (",
          after: "))",
        },
      ];
    }
    case "CatchClause":
      return [{ ...inBody, before: " $recorder.resume($frame); ", after: "" }];
    case "TryStatement": {
      /** @type {Node | null} */
      const last = node["finalizer"];
      if (last === null) return [];
      return [{ start: last.start + 1, end, before: " $recorder.resume($frame); ", after: "" }];
    }
    default:
      return [];
  }
}
