// @ts-check
/**
 * Bundles src/ with vite: one file for each entry of `exports`, three for the command line, and
 * the parts that they share. There are few files, because each adds about 0.2 ms to the start of a
 * process.
 *
 * Local names are shortened. Names of functions, classes, methods and private members stay, so
 * that a stack trace reads as in the source; with `--enable-source-maps` it also shows the lines.
 * The command line, the simulator and `holdfast/testing` have no maps, and short private names.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, parseSync } from "vite";
import { mapLines } from "./source-maps.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Replaces the # of private names during minification, because the minifier shortens private names
 * but not properties. It is a letter, and one column wide like #.
 */
const privateMark = "\u01C2";

/** Programs of the command line, by the name of their file. */
const programs = {
  "cli/main": "cli/main.ts",
  "cli/watchdog": "cli/exec/watchdog.ts",
  "cli/demo-worker": "cli/demo/demo-worker.ts",
};

/** Modules that stay in one file. Without this there is a file for each set of entries. */
const groups = [
  { name: "core", test: /\/src\/(core|runtime|(index|store)\.ts$)/, priority: 9 },
  { name: "clients", test: /\/src\/clients\//, priority: 8 },
  { name: "redis", test: /\/src\/stores\/redis\//, priority: 8 },
  { name: "embedded", test: /\/src\/stores\/embedded\//, priority: 8 },
  { name: "postgres", test: /\/src\/stores\/postgres\//, priority: 8 },
  { name: "simulator", test: /\/src\/simulator\//, priority: 8 },
  // Without the guard of Redis, which needs clients.
  { name: "fencing", test: /\/src\/fencing\/(?!redis)/, priority: 8 },
  { name: "fencing-redis", test: /\/src\/fencing\/redis-/, priority: 8 },
  { name: "exec", test: /\/src\/cli\/exec\//, priority: 7, minShareCount: 2 },
  { name: "demo", test: /\/src\/cli\/demo\//, priority: 7, minShareCount: 2 },
  { name: "common", test: /\/src\/cli\//, priority: 6, minShareCount: 2 },
  { name: "ioredis", test: /\/node_modules\/(?!commander|picocolors)/, priority: 4 },
];

/** @returns {Map<string, string>} entry names and their sources */
export function libraryEntries() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const targets = Object.values(exports).filter((target) => typeof target !== "string");
  const names = targets.map((target) => target.default.replace(/^\.\/dist\/|\.js$/g, ""));
  return new Map(names.map((name) => [name, join(root, "src", `${name}.ts`)]));
}

/** @returns {Promise<Map<string, string>>} texts by path in dist/ */
export async function bundle() {
  const cli = Object.entries(programs).map(([name, path]) => [name, join(root, "src", path)]);
  const built = await build({
    root,
    configFile: false,
    logLevel: "error",
    publicDir: false,
    ssr: { noExternal: true },
    plugins: [
      { name: "keep-private-names", enforce: "pre", transform: markPrivateNames },
      { name: "short-command-table", enforce: "pre", load: loadCommandTable },
    ],
    build: {
      ssr: true,
      write: false,
      target: "node20",
      minify: false,
      sourcemap: true,
      // The licenses of the bundled packages.
      license: { fileName: "cli/licenses.md" },
      rollupOptions: {
        input: Object.fromEntries([...libraryEntries(), ...cli]),
        // Not bundled, because it has native code.
        external: ["lmdb"],
        preserveEntrySignatures: "strict",
        output: {
          entryFileNames: "[name].js",
          // Without a hash, so that each build has the same file names.
          chunkFileNames: ({ moduleIds }) =>
            moduleIds.every(isOfCommandLine) ? "cli/part-[name].js" : "parts/[name].js",
          sourcemapExcludeSources: true,
          codeSplitting: { groups },
          minify: {
            compress: true,
            mangle: { keepNames: true },
            codegen: { removeWhitespace: true },
          },
        },
      },
    },
  });
  /** @type {Map<string, string>} */
  const files = new Map();
  for (const { output } of /** @type {import("vite").Rolldown.RolldownOutput[]} */ (
    [built].flat()
  )) {
    for (const file of output) {
      if (file.type === "asset" && !file.fileName.endsWith(".map")) {
        files.set(file.fileName, withOneMitText(String(file.source)));
      } else if (file.type === "chunk") {
        addChunk(files, file);
      }
    }
  }
  return files;
}

/**
 * @param {Map<string, string>} files
 * @param {import("vite").Rolldown.OutputChunk} chunk
 */
function addChunk(files, { fileName, code, map, moduleIds }) {
  const text = code.replaceAll(privateMark, "#").replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "");
  const isMapped = map !== null && moduleIds.length > 0 && !moduleIds.some(isOnlyForTools);
  if (!isMapped) {
    files.set(fileName, `${text}\n`);
    return;
  }
  const mapName = `${fileName}.map`;
  files.set(mapName, JSON.stringify(mapLines(text, map)));
  files.set(fileName, `${text}\n//# sourceMappingURL=${mapName.replace(/^.*\//, "")}\n`);
}

/**
 * Writes the license text that most packages share once, at the end. The rest keep their copyright
 * lines only.
 *
 * @param {string} licenses
 */
function withOneMitText(licenses) {
  const sections = licenses.trimEnd().split(/^(?=## )/m);
  const begin = "Permission is hereby granted, free of charge";
  const end = "SOFTWARE.";
  /** @param {string} text */
  const mitIn = (text) => {
    const [from, to] = [text.indexOf(begin), text.lastIndexOf(end) + end.length];
    return from < 0 || to < from ? undefined : { from, to, text: text.slice(from, to) };
  };
  const plain = (/** @type {string} */ text) => text.replaceAll(/[\s"'“”]+/g, " ");
  const first = sections.map(mitIn).find((found) => found !== undefined);
  if (first === undefined) return licenses;
  const short = sections.map((section) => {
    const found = mitIn(section);
    if (found === undefined || plain(found.text) !== plain(first.text)) return section;
    return `${section.slice(0, found.from)}(permission notice: see the end)${section.slice(found.to)}`;
  });
  return `${short.join("")}\n\n## The permission notice\n\n${first.text}\n`;
}

/** @param {string} id path of a module */
function isOfCommandLine(id) {
  return /\/src\/cli\/|\/node_modules\/|^\0/.test(id);
}

/** True for modules that a service does not run, so they need no map. @param {string} id */
function isOnlyForTools(id) {
  return isOfCommandLine(id) || /\/src\/(simulator|testing)\//.test(id);
}

/**
 * @param {string} code
 * @param {string} id
 */
function markPrivateNames(code, id) {
  if (!id.startsWith(join(root, "src")) || !code.includes("#") || isOnlyForTools(id)) return null;
  if (code.includes(privateMark)) throw new Error(`${id}: contains ${privateMark}`);
  const starts = privateNamesIn(parseSync(id, code).program).sort((a, b) => a - b);
  let marked = "";
  let end = 0;
  for (const start of starts) {
    marked += `${code.slice(end, start)}${privateMark}`;
    end = start + 1;
  }
  return { code: marked + code.slice(end), map: null };
}

/**
 * Writes ioredis' table of all Redis commands as lines of text: 10 kB instead of 25.
 *
 * @param {string} id
 */
function loadCommandTable(id) {
  if (!id.endsWith("/@ioredis/commands/built/commands.json")) return null;
  const fields = ["arity", "keyStart", "keyStop", "step"];
  const rows = Object.entries(JSON.parse(readFileSync(id, "utf8"))).map(([name, command]) => {
    const { flags, ...numbers } = command;
    if (Object.keys(numbers).toSorted().join() !== fields.toSorted().join()) {
      throw new Error(`${id}: the fields of ${name} are others than expected`);
    }
    return [name, flags.join(), ...fields.map((field) => numbers[field])].join(" ");
  });
  const code =
    `const table = ${JSON.stringify(rows.join("\n"))};\n` +
    'module.exports = Object.fromEntries(table.split("\\n").map((row) => {\n' +
    `  const [name, flags, ${fields.join(", ")}] = row.split(" ");\n` +
    '  return [name, { flags: flags === "" ? [] : flags.split(","), ' +
    `${fields.map((field) => `${field}: Number(${field})`).join(", ")} }];\n` +
    "}));\n";
  return { code, moduleType: "js" };
}

/** @param {unknown} node @returns {number[]} */
function privateNamesIn(node) {
  if (Array.isArray(node)) return node.flatMap(privateNamesIn);
  if (typeof node !== "object" || node === null) return [];
  const { type, start } = /** @type {{ type?: unknown, start?: unknown }} */ (node);
  if (type === "PrivateIdentifier") return [Number(start)];
  return Object.values(node).flatMap(privateNamesIn);
}
