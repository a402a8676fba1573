// @ts-check
/** Counts words that the house style avoids, in comments, documentation and identifiers. */

import { parse, visit } from "./sources.mjs";

/** @typedef {import("./sources.mjs").SourceFile} SourceFile */
/** @typedef {{ words: number, banned: number }} Count */

/** Words of things that speak, and of persons that do not exist. See CONTRIBUTING.md. */
export const bannedWords = new Set(
  "told tell tells heard hear hears ear ears whoever nobody somebody".split(" "),
);
const luaKeywords = new Set(
  (
    "and break do else elseif end false for function if in local nil not or repeat return then " +
    "true until while"
  ).split(" "),
);

/**
 * Returns the counts for each kind of text. Identifiers are split into their words ("sendNode" is
 * two) and count once per file; those of other packages count where they are used.
 *
 * @param {readonly SourceFile[]} files TypeScript, JavaScript, Lua and Markdown
 * @returns {{ comments: Count, identifiers: Count, docs: Count }}
 */
export function countWords(files) {
  const counts = { comments: none(), identifiers: none(), docs: none() };
  for (const file of files) {
    if (file.path.endsWith(".md")) count(file.text, counts.docs);
    else if (file.path.endsWith(".lua")) countLua(file.text, counts);
    else countScript(file, counts);
  }
  return counts;
}

/** @returns {Count} */
function none() {
  return { words: 0, banned: 0 };
}

/** @param {SourceFile} file @param {{ comments: Count, identifiers: Count }} counts */
function countScript(file, counts) {
  const { program, comments } = parse(file);
  for (const { value } of comments) count(value, counts.comments);
  /** @type {Set<string>} */
  const names = new Set();
  visit(program, (node) => {
    if (/^(Private|JSX)?Identifier$/.test(node.type)) names.add(node["name"]);
  });
  for (const name of names) count(name, counts.identifiers);
}

/** @param {string} text @param {{ comments: Count, identifiers: Count }} counts */
function countLua(text, counts) {
  // The scripts have neither strings nor comments over several lines, and no "--" in a string.
  for (const [comment] of text.matchAll(/--.*/g)) count(comment, counts.comments);
  const code = text.replaceAll(/--.*|"[^"\n]*"|'[^'\n]*'/g, " ");
  for (const name of new Set(code.match(/[A-Za-z_]\w*/g))) {
    if (!luaKeywords.has(name)) count(name, counts.identifiers);
  }
}

/** @param {string} text @param {Count} counted */
function count(text, counted) {
  for (const word of wordsOf(text)) {
    counted.words += 1;
    if (bannedWords.has(word)) counted.banned += 1;
  }
}

/**
 * Returns the words of a text in lower case, with camelCase and snake_case split.
 *
 * @param {string} text
 */
export function wordsOf(text) {
  const apart = text.replaceAll(/([a-z\d])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$1$3 $2");
  return apart.toLowerCase().match(/[a-z]+(?:['’][a-z]+)?/g) ?? [];
}

/**
 * @param {readonly Count[]} counts
 * @returns {number} banned words per 10,000 words, to one decimal
 */
export function perTenThousand(counts) {
  const words = counts.reduce((sum, count) => sum + count.words, 0);
  const found = counts.reduce((sum, count) => sum + count.banned, 0);
  return words === 0 ? 0 : Math.round((found / words) * 100_000) / 10;
}
