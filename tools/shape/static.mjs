// @ts-check
/** The measurements that only read files, as rows of the table. */

import { folderCycles, importsBetween, looseFiles, smallFilesWithOneImporter } from "./imports.mjs";
import { linesOf, readFiles } from "./sources.mjs";
import { countWords, perTenThousand } from "./words.mjs";

/** @typedef {import("./sources.mjs").SourceFile} SourceFile */
/**
 * @typedef {object} Row
 * @property {string} what
 * @property {number} value
 * @property {number} [goal] the greatest value that is good enough
 * @property {readonly string[]} [details] names behind the number, for the JSON
 */

const store = "src/stores/redis";

/**
 * @param {string} root of a project laid out like this one
 * @returns {Row[]}
 */
export function measureFiles(root) {
  const files = readFiles(root, (path) => /\.(ts|mjs|js|lua|md)$/.test(path) && !isGenerated(path));
  return [...importRows(files), ...sizeRows(root, files), ...wordRows(files)];
}

/** @param {string} path */
function isGenerated(path) {
  return path.startsWith("test/api/") || path.endsWith("/generated.ts");
}

/** @param {readonly SourceFile[]} files @returns {Row[]} */
function importRows(files) {
  const sources = files.filter(({ path }) => /^src\/.*\.ts$/.test(path));
  const imports = importsBetween(sources);
  const atRunTime = folderCycles(
    imports.filter(({ typeOnly }) => !typeOnly),
    store,
  );
  const withTypes = folderCycles(imports, store);
  const loose = looseFiles(sources, store);
  const small = smallFilesWithOneImporter(sources, imports);
  return [
    { what: "folders of stores/redis in import cycles", ...cycleValue(atRunTime), goal: 0 },
    { what: "… with type-only imports", ...cycleValue(withTypes), goal: 0 },
    { what: "loose files in stores/redis", value: loose.length, goal: 8, details: loose },
    {
      what: "files of at most 60 lines with one importer in src",
      value: small.length,
      goal: 10,
      details: small,
    },
    {
      what: "… in stores/redis",
      value: small.filter((path) => path.startsWith(`${store}/`)).length,
    },
  ];
}

/** @param {readonly string[][]} cycles */
function cycleValue(cycles) {
  return { value: cycles.flat().length, details: cycles.map((cycle) => cycle.join(" ")) };
}

/** @param {string} root @param {readonly SourceFile[]} files @returns {Row[]} */
function sizeRows(root, files) {
  const declarations = readFiles(root, (path) => path === "test/api/index.d.ts");
  const readme = files.filter(({ path }) => path === "README.md");
  // An estimate of the number of places in which a rule is written.
  const commandFolders = {
    "stores/redis/scripts": `${store}/scripts/`,
    "stores/redis/commands": `${store}/commands/`,
    "simulator/node": "src/simulator/node/",
  };
  return [
    { what: "lines of test/api/index.d.ts", value: lineCount(declarations), goal: 400 },
    { what: "lines of README.md", value: lineCount(readme), goal: 150 },
    { what: "widest column of README.md", value: widest(readme), goal: 120 },
    ...Object.entries(commandFolders).flatMap(([what, folder]) => {
      const inside = files.filter(({ path }) => path.startsWith(folder));
      return [
        { what: `files of ${what}`, value: inside.length },
        { what: `lines of ${what}`, value: lineCount(inside) },
      ];
    }),
  ];
}

/** @param {readonly SourceFile[]} files */
function lineCount(files) {
  return files.reduce((sum, { text }) => sum + linesOf(text).length, 0);
}

/** @param {readonly SourceFile[]} files */
function widest(files) {
  const widths = files.flatMap(({ text }) => linesOf(text).map((line) => line.length));
  return Math.max(0, ...widths);
}

/** @param {readonly SourceFile[]} files @returns {Row[]} */
function wordRows(files) {
  const sources = countWords(files.filter(({ path }) => path.startsWith("src/")));
  const others = countWords(files.filter(({ path }) => !path.startsWith("src/")));
  const all = [sources.comments, sources.identifiers, others.comments, others.identifiers];
  return [
    {
      what: "words to avoid per 10,000 in comments, docs, identifiers",
      value: perTenThousand([...all, others.docs]),
      goal: 2,
    },
    { what: "… in comments of src", value: perTenThousand([sources.comments]), goal: 2 },
    { what: "… in identifiers of src", value: perTenThousand([sources.identifiers]), goal: 2 },
    { what: "… in other comments", value: perTenThousand([others.comments]), goal: 2 },
    { what: "… in other identifiers", value: perTenThousand([others.identifiers]), goal: 2 },
    { what: "… in docs (Markdown)", value: perTenThousand([others.docs]), goal: 2 },
  ];
}
