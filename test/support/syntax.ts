import { parseSync } from "vite";

/** What the tidy rules need to know of a TypeScript file: its real code, no comments or strings. */
export interface Syntax {
  /** Module specifiers of imports and re-exports, types and dynamic imports included. */
  readonly imports: readonly Located[];
  /** Names that stand for a variable or a type, not for a property. */
  readonly names: readonly Located[];
  /** Dotted accesses such as `Math.random`. */
  readonly accesses: readonly Located[];
}

export interface Located {
  readonly text: string;
  readonly line: number;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** Throws for a file that does not parse: a rule must not pass because it saw nothing. */
export function readSyntax(path: string, text: string): Syntax {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const found = { imports: [] as Located[], names: [] as Located[], accesses: [] as Located[] };
  const at = (node: Node, what: unknown): Located => ({
    text: String(what),
    line: text.slice(0, node.start).split("\n").length,
  });
  visit(program as unknown as Node, (node, isPropertyName) => {
    const source = node["source"];
    if (isNode(source)) found.imports.push(at(node, source["value"]));
    if (node.type === "Identifier" && !isPropertyName) found.names.push(at(node, node["name"]));
    const { object, property } = node;
    if (!isNode(object) || !isNode(property)) return;
    if (object.type !== "Identifier") return;
    // `Math["random"]` is `Math.random`, too.
    const name = property["name"] ?? property["value"];
    found.accesses.push(at(node, [object["name"], name].join(".")));
  });
  return found;
}

/** Walks the tree; for each identifier, reports if it only names a property or a member. */
function visit(
  node: Node,
  see: (node: Node, isPropertyName: boolean) => void,
  named = false,
): void {
  see(node, named);
  for (const [field, child] of Object.entries(node)) {
    const namesProperty = !isComputed(node) && !isShorthand(node) && nameFields.has(field);
    for (const each of Array.isArray(child) ? child : [child]) {
      if (isNode(each)) visit(each, see, namesProperty || isImportedName(node, field));
    }
  }
}

const nameFields = new Set(["key", "property", "meta", "label"]);

function isComputed(node: Node): boolean {
  return node["computed"] === true;
}

/** `{ Date }` is both a property and a use of the variable. */
function isShorthand(node: Node): boolean {
  return node["shorthand"] === true;
}

/** `imported as local`: the name in the other module is no variable of this one. */
function isImportedName(node: Node, field: string): boolean {
  if (node.type === "ImportSpecifier") return field === "imported";
  if (node.type === "ExportSpecifier") return field === "exported";
  return node.type === "TSQualifiedName" && field === "right";
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}
