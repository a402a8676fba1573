// @ts-check
/**
 * The public surface as text, so that a change of it is visible in review: for each subpath of
 * `exports`, the declarations that a user can reach, without comments. A declaration is shown once,
 * by the first subpath that exports it.
 *
 *   npm run api:update     writes test/api/*.d.ts
 */

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseSync } from "vite";
import { compile } from "./build.mjs";
import { Modules } from "./roll-up-types.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
export const apiFolder = join(root, "test", "api");

/**
 * Compiles the declarations. Returns the text of each file of test/api by its name, and what is
 * wrong with the surface.
 *
 * @returns {{ rendered: Map<string, string>, faults: string[] }}
 */
export function renderApi() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-api-"));
  try {
    const { status, output } = compile(join(folder, "dist"), ["--emitDeclarationOnly"]);
    if (status !== 0) throw new Error(`the sources do not compile:\n${output}`);
    const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const read = (/** @type {string} */ path) => readFileSync(join(folder, path), "utf8");
    return { rendered: renderSurface(exports, read), faults: faultsOfSurface(exports, read) };
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
  const { entries, reached, homes } = surfaceOf(exports, read);
  return new Map(
    entries.map(({ path, name }) => {
      const own = reached.filter((declaration) => homeOf(declaration, homes) === path);
      const blocks = [
        ...own.filter((declaration) => homes.has(declaration)).map(textOf),
        ...own.filter((declaration) => !homes.has(declaration)).map(hiddenTextOf),
        exportsElsewhere(entries, path, homes),
      ];
      return [name, blocks.filter((block) => block !== "").join("\n")];
    }),
  );
}

/**
 * Returns what is wrong with the surface: a type name with two meanings, and a class that a user can
 * reach but not import, which is part of the inside.
 *
 * @param {Record<string, string | { types: string }>} exports
 * @param {(path: string) => string} read
 * @returns {string[]}
 */
export function faultsOfSurface(exports, read) {
  const { entries, reached, homes } = surfaceOf(exports, read);
  /** @type {Map<string, Declaration>} */
  const byName = new Map();
  const doubles = entries.flatMap(({ names }) =>
    [...names].flatMap(([name, declaration]) => {
      const other = byName.get(name) ?? declaration;
      byName.set(name, other);
      // Functions may have twins, one for each kind of database.
      const isFunction = declaration.text.includes("declare function ");
      return other === declaration || isFunction ? [] : [`${name} has two meanings`];
    }),
  );
  const hidden = reached.filter((declaration) => !homes.has(declaration) && isClass(declaration));
  return [...doubles, ...hidden.map(({ name }) => `the class ${name} is not exported`)];
}

/** @typedef {import("./roll-up-types.mjs").Declaration} Declaration */
/** @typedef {{ path: string, name: string, names: Map<string, Declaration> }} Entry */

/**
 * Returns the entries, the declarations that they reach, and for each exported declaration the
 * path of the first entry that exports it.
 *
 * @param {Record<string, string | { types: string }>} exports
 * @param {(path: string) => string} read
 */
function surfaceOf(exports, read) {
  const modules = new Modules(read);
  /** @type {Map<Declaration, string>} */
  const homes = new Map();
  const entries = Object.entries(exports).flatMap(([subpath, target]) => {
    if (typeof target === "string") return [];
    const name = subpath === "." ? "index" : subpath.slice(2).replaceAll("/", "-");
    const entry = { path: target.types, name: `${name}.d.ts`, names: new Map() };
    for (const exported of modules.at(entry.path).exports.keys()) {
      const meaning = modules.resolve(entry.path, exported);
      modules.use(meaning, entry.path, new Set());
      if (!("declaration" in meaning)) continue;
      const { declaration } = meaning;
      entry.names.set(exported, declaration);
      if (!homes.has(declaration)) homes.set(declaration, entry.path);
    }
    return [entry];
  });
  const reached = modules.declarations().filter(({ users }) => users.size > 0);
  return { entries, reached, homes };
}

/** @param {Declaration} declaration @param {ReadonlyMap<Declaration, string>} homes */
function homeOf(declaration, homes) {
  return homes.get(declaration) ?? [...declaration.users][0];
}

/**
 * Returns the names that an entry exports, and that another shows.
 *
 * @param {readonly Entry[]} entries
 * @param {string} path
 * @param {ReadonlyMap<Declaration, string>} homes
 */
function exportsElsewhere(entries, path, homes) {
  const own = entries.find((entry) => entry.path === path);
  return [...(own?.names ?? [])]
    .flatMap(([name, declaration]) => {
      const home = entries.find((entry) => entry.path === homes.get(declaration));
      return home === own ? [] : [`// ${name}: in ${home?.name}\n`];
    })
    .join("");
}

/** @param {Declaration} declaration */
function isClass({ text }) {
  return /^declare (abstract )?class /m.test(text);
}

/** @param {Declaration} declaration */
function textOf(declaration) {
  return bare(declaration).replaceAll(/^(?=interface |type |declare )/gm, "export ");
}

/** @param {Declaration} declaration */
function hiddenTextOf(declaration) {
  return `// not exported\n${bare(declaration)}`;
}

/** Returns the text without comments. @param {Declaration} declaration */
function bare({ module, name, text }) {
  const { comments, errors } = parseSync(`${name}.d.ts`, text);
  if (errors.length > 0) throw new Error(`${module.path}: ${errors[0]?.message}`);
  let without = text;
  for (const { start, end } of comments.toReversed()) {
    without = without.slice(0, start) + without.slice(end);
  }
  const lines = without.split("\n").filter((line) => line.trim() !== "");
  return `${lines.join("\n")}\n`;
}

function main() {
  const { rendered, faults } = renderApi();
  for (const fault of faults) console.error(fault);
  mkdirSync(apiFolder, { recursive: true });
  for (const old of readdirSync(apiFolder)) {
    if (!rendered.has(old)) rmSync(join(apiFolder, old));
  }
  for (const [name, text] of rendered) writeFileSync(join(apiFolder, name), text);
  console.log(`wrote ${rendered.size} files to ${join("test", "api")}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
