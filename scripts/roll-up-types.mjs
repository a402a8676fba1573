// @ts-check
/**
 * Rolls up the declaration files of tsc, one per source, into one per entry and a file for those
 * that several entries share. A class must be declared once: with two copies, its private members
 * would make them two different types. Declarations that no entry reaches are left out.
 *
 * Supports the forms that tsc writes for src/: named imports and exports, and declarations. Throws
 * for any other form, and the package test compiles the result in another project.
 */

import { posix } from "node:path";
import { parseSync } from "vite";

/**
 * @typedef {{ type: string, start: number, end: number, [field: string]: unknown }} Node
 * @typedef {{ name: string, start: number, end: number }} Reference
 * @typedef {{
 *   module: Module, name: string, text: string, references: readonly Reference[],
 *   finalName: string, users: Set<string>,
 * }} Declaration
 * @typedef {{ from: string, name: string, isType: boolean }} Link
 * @typedef {{
 *   path: string, declarations: Map<string, Declaration>, imports: Map<string, Link>,
 *   exports: Map<string, Link>,
 * }} Module
 * @typedef {{ declaration: Declaration, isType: boolean } | { external: Link }} Target
 */

/** Fields that hold a name inside of the declaration. @type {Record<string, string>} */
const ownNames = {
  TSPropertySignature: "key",
  TSMethodSignature: "key",
  PropertyDefinition: "key",
  MethodDefinition: "key",
  AccessorProperty: "key",
  Property: "key",
  MemberExpression: "property",
  TSQualifiedName: "right",
  TSTypeParameter: "name",
  TSMappedType: "key",
  TSNamedTupleMember: "label",
  TSTypePredicate: "parameterName",
};

/** Fields of functions and index signatures with the names of parameters. */
const parameterFields = new Set(["params", "parameters"]);

/**
 * @param {readonly string[]} entries paths of declaration files
 * @param {string} sharedPath path of the file for what several of them need
 * @param {(path: string) => string} read the text of a declaration file by its path
 * @returns {Map<string, string>} texts by path
 */
export function rollUpTypes(entries, sharedPath, read) {
  const modules = new Modules(read);
  /** @type {Map<string, Map<string, Target>>} */
  const surfaces = new Map();
  /** Names of the language and of Node.js. @type {Set<string>} */
  const globals = new Set();
  for (const entry of entries) {
    const { exports } = modules.at(entry);
    const surface = new Map(
      [...exports.keys()].map((name) => [name, modules.resolve(entry, name)]),
    );
    surfaces.set(entry, surface);
    for (const target of surface.values()) modules.use(target, entry, globals);
  }
  const used = modules.declarations().filter(({ users }) => users.size > 0);
  nameApart(used, globals);

  /** @type {Map<string, Declaration[]>} */
  const files = new Map([sharedPath, ...entries].map((path) => [path, []]));
  for (const declaration of used) {
    const [only] = declaration.users;
    const path = declaration.users.size === 1 && only !== undefined ? only : sharedPath;
    files.get(path)?.push(declaration);
  }
  return new Map(
    [...files].map(([path, declarations]) => {
      const surface = surfaces.get(path) ?? surfaceOf(declarations);
      return [path, render(path, sharedPath, declarations, surface, modules)];
    }),
  );
}

/** The modules read so far, and the targets of their names. */
export class Modules {
  /** @type {Map<string, Module>} */
  #modules = new Map();
  #read;

  /** @param {(path: string) => string} read */
  constructor(read) {
    this.#read = read;
  }

  /** @param {string} path */
  at(path) {
    const known = this.#modules.get(path);
    if (known !== undefined) return known;
    const module = readModule(path, this.#read(path));
    this.#modules.set(path, module);
    return module;
  }

  /** Returns all declarations by path, and in the order of the source. */
  declarations() {
    const modules = [...this.#modules.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
    return modules.flatMap(({ declarations }) => [...declarations.values()]);
  }

  /**
   * @param {string} path
   * @param {string} name a name that the module exports
   * @returns {Target}
   */
  resolve(path, name) {
    const link = this.at(path).exports.get(name);
    if (link === undefined) throw new Error(`${path}: exports no "${name}"`);
    const target =
      link.from === "" ? this.lookUp(this.at(path), link.name) : this.resolve(link.from, link.name);
    if (target === undefined) throw new Error(`${path}: "${name}" is not declared`);
    return link.isType ? asType(target) : target;
  }

  /**
   * Returns the meaning of a name inside of a module; undefined for a global name.
   *
   * @param {Module} module
   * @param {string} name
   * @returns {Target | undefined}
   */
  lookUp(module, name) {
    const declaration = module.declarations.get(name);
    if (declaration !== undefined) return { declaration, isType: false };
    const link = module.imports.get(name);
    if (link === undefined) return undefined;
    if (!link.from.startsWith("./")) return { external: link };
    const target = this.resolve(link.from, link.name);
    return link.isType ? asType(target) : target;
  }

  /**
   * Marks a declaration, and all that it refers to, as used by an entry.
   *
   * @param {Target} target
   * @param {string} entry
   * @param {Set<string>} globals
   */
  use(target, entry, globals) {
    if (!("declaration" in target) || target.declaration.users.has(entry)) return;
    const { users, module, references } = target.declaration;
    users.add(entry);
    for (const { name } of references) {
      const next = this.lookUp(module, name);
      if (next === undefined) globals.add(name);
      else this.use(next, entry, globals);
    }
  }
}

/** @param {Target} target @returns {Target} */
function asType(target) {
  return "external" in target ? target : { ...target, isType: true };
}

/** @param {readonly Declaration[]} declarations @returns {Map<string, Target>} */
function surfaceOf(declarations) {
  return new Map(
    declarations.map((declaration) => [declaration.finalName, { declaration, isType: false }]),
  );
}

/**
 * Gives each declaration a unique name, different from all globals that are referred to.
 *
 * @param {readonly Declaration[]} declarations
 * @param {ReadonlySet<string>} globals
 */
function nameApart(declarations, globals) {
  const taken = new Set(globals);
  // Exported declarations keep their names.
  const isExported = (/** @type {Declaration} */ { module, name }) => module.exports.has(name);
  const ordered = [
    ...declarations.filter(isExported),
    ...declarations.filter((declaration) => !isExported(declaration)),
  ];
  for (const declaration of ordered) {
    let name = declaration.name;
    for (let count = 2; taken.has(name); count += 1) name = `${declaration.name}${count}`;
    taken.add(name);
    declaration.finalName = name;
  }
}

/**
 * @param {string} path
 * @param {string} sharedPath
 * @param {readonly Declaration[]} declarations
 * @param {ReadonlyMap<string, Target>} surface
 * @param {Modules} modules
 */
function render(path, sharedPath, declarations, surface, modules) {
  /** @type {Set<string>} */
  const shared = new Set();
  /** @type {Map<string, Set<string>>} */
  const external = new Map();
  /** @param {Target} target */
  const nameOf = (target) => {
    if ("external" in target) {
      const { from, name } = target.external;
      const names = external.get(from) ?? new Set();
      external.set(from, names.add(name));
      return name;
    }
    const { users, finalName } = target.declaration;
    if (users.size > 1 && path !== sharedPath) shared.add(finalName);
    return finalName;
  };
  const blocks = declarations.map(({ module, text, references }) => {
    let written = text;
    for (const { name, start, end } of references.toReversed()) {
      const target = modules.lookUp(module, name);
      if (target === undefined) continue;
      written = written.slice(0, start) + nameOf(target) + written.slice(end);
    }
    return written.replaceAll(/^(?: {4})+/gm, (indent) => indent.slice(indent.length / 2));
  });
  const exported = [...surface].map(([name, target]) => {
    const local = nameOf(target);
    const type = "declaration" in target && target.isType ? "type " : "";
    return `${type}${local === name ? name : `${local} as ${name}`}`;
  });
  const imports = [...external].map(
    ([from, names]) => `import type ${list([...names])} from "${from}";\n`,
  );
  if (shared.size > 0) {
    const from = posix.relative(posix.dirname(path), sharedPath).replace(/\.d\.ts$/, ".js");
    const specifier = from.startsWith(".") ? from : `./${from}`;
    imports.push(`import ${list([...shared])} from "${specifier}";\n`);
  }
  return `${imports.join("")}${blocks.join("\n")}\nexport ${list(exported)};\n`;
}

/** @param {readonly string[]} names */
function list(names) {
  return names.length === 0 ? "{}" : `{\n  ${names.toSorted().join(",\n  ")},\n}`;
}

/**
 * @param {string} path
 * @param {string} text
 * @returns {Module}
 */
function readModule(path, text) {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  /** @type {Module} */
  const module = { path, declarations: new Map(), imports: new Map(), exports: new Map() };
  let end = 0;
  for (const statement of /** @type {Node[]} */ (/** @type {unknown} */ (program.body))) {
    readStatement(module, statement, text, end);
    end = statement.end;
  }
  return module;
}

/**
 * @param {Module} module
 * @param {Node} statement
 * @param {string} text
 * @param {number} before where the statement before it ends; comments are in between
 */
function readStatement(module, statement, text, before) {
  const source = /** @type {{ value: string } | null | undefined} */ (statement["source"]);
  const from = source ? resolvePath(module.path, source.value) : "";
  const specifiers = /** @type {Node[]} */ (statement["specifiers"] ?? []);
  if (statement.type === "ImportDeclaration") {
    for (const specifier of specifiers) {
      const isNamed = specifier.type === "ImportSpecifier";
      const isType = isTypeOnly(statement, "importKind") || isTypeOnly(specifier, "importKind");
      // A namespace import that a declaration needs is not supported.
      const name = isNamed ? nameIn(specifier, "imported") : "*";
      module.imports.set(nameIn(specifier, "local"), { from, name, isType });
    }
    return;
  }
  if (statement.type === "ExportNamedDeclaration" && !statement["declaration"]) {
    for (const specifier of specifiers) {
      const isType = isTypeOnly(statement, "exportKind") || isTypeOnly(specifier, "exportKind");
      const link = { from, name: nameIn(specifier, "local"), isType };
      module.exports.set(nameIn(specifier, "exported"), link);
    }
    return;
  }
  const isExport = statement.type === "ExportNamedDeclaration";
  const node = isExport ? /** @type {Node} */ (statement["declaration"]) : statement;
  const isKnown = /^(TSInterface|TSTypeAlias|Class|Variable)Declaration$|^TSDeclareFunction$/;
  if (!isKnown.test(node.type)) throw new Error(`${module.path}: cannot roll up ${node.type}`);
  const comment = text.slice(before, statement.start).trim();
  const lead = comment === "" ? "" : `${comment}\n`;
  for (const name of namesDeclaredBy(node)) {
    if (isExport) module.exports.set(name, { from: "", name, isType: false });
    const known = module.declarations.get(name);
    const earlier = known === undefined ? "" : `${known.text}\n`;
    const shift = earlier.length + lead.length - node.start;
    module.declarations.set(name, {
      module,
      name,
      text: `${earlier}${lead}${text.slice(node.start, node.end)}`,
      references: [...(known?.references ?? []), ...referencesIn(node, shift)],
      finalName: name,
      users: new Set(),
    });
  }
}

/** @param {Node} node */
function namesDeclaredBy(node) {
  if (node.type !== "VariableDeclaration") return [nameIn(node, "id")];
  const declarators = /** @type {Node[]} */ (node["declarations"]);
  if (declarators.length !== 1)
    throw new Error("cannot roll up several variables in one statement");
  return declarators.map((declarator) => nameIn(declarator, "id"));
}

/**
 * Returns the identifiers that refer to something outside of the node, and its own name.
 *
 * @param {Node} declaration
 * @param {number} shift
 * @returns {Reference[]}
 */
function referencesIn(declaration, shift) {
  /** @type {Reference[]} */
  const found = [];
  /** Type parameters. @type {Set<string>} */
  const inner = new Set();
  /** @param {unknown} value @param {boolean} isName */
  const visit = (value, isName) => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item, isName);
      return;
    }
    if (typeof value !== "object" || value === null || !("type" in value)) return;
    const node = /** @type {Node} */ (value);
    if (node.type === "TSImportType") throw new Error("cannot roll up import(…) types");
    if (node.type === "TSTypeParameter") inner.add(nameIn(node, "name"));
    if (node.type === "TSMappedType") inner.add(nameIn(node, "key"));
    if (node.type === "Identifier" && !isName) {
      const name = String(node["name"]);
      // An identifier with a type annotation spans both.
      found.push({ name, start: node.start + shift, end: node.start + name.length + shift });
    }
    for (const [field, child] of Object.entries(node)) {
      const isOwn = ownNames[node.type] === field && node["computed"] !== true;
      const isParameter = parameterFields.has(field) && !node.type.startsWith("TSTypeParameter");
      visit(child, isOwn || isParameter || (isName && field !== "typeAnnotation"));
    }
  };
  visit(declaration, false);
  found.sort((a, b) => a.start - b.start);
  return found.filter(({ name }) => !inner.has(name));
}

/** @param {Node} node @param {string} field */
function nameIn(node, field) {
  const value = /** @type {{ name?: string, value?: string } | string} */ (node[field]);
  const name = typeof value === "string" ? value : (value.name ?? value.value);
  if (name === undefined) throw new Error(`${node.type}: its ${field} has no name`);
  return name;
}

/** @param {Node} node @param {string} field */
function isTypeOnly(node, field) {
  return node[field] === "type";
}

/** @param {string} path @param {string} specifier */
function resolvePath(path, specifier) {
  if (!specifier.startsWith(".")) return specifier;
  const joined = posix.join(posix.dirname(path), specifier);
  return `./${joined.replace(/(\.d)?\.[jt]s$/, ".d.ts")}`;
}
