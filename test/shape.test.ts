import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { instrument } from "../tools/shape/instrument.mjs";
import type { Row } from "../tools/shape/static.mjs";
import { projectRoot } from "./support/source-files.ts";

const store = "src/stores/redis";

test("the files of a small tree are measured", () => {
  const rows = shape("--root", smallTree());
  expect(valuesOf(rows)).toMatchObject({
    "folders of stores/redis in import cycles": 2,
    "… with type-only imports": 3,
    "loose files in stores/redis": 1,
    "files of at most 60 lines with one importer in src": 2,
    "lines of test/api/index.d.ts": 3,
    "lines of README.md": 2,
    "widest column of README.md": 17,
    "files of stores/redis/scripts": 1,
    "lines of stores/redis/scripts": 2,
  });
});

test("the folders of each cycle and the counted files are named", () => {
  const rows = shape("--root", smallTree());
  const details = Object.fromEntries(rows.map((row) => [row.what, row.details]));
  expect(details).toMatchObject({
    "folders of stores/redis in import cycles": ["node protocol"],
    "… with type-only imports": [". node protocol"],
    "loose files in stores/redis": [`${store}/store.ts`],
    "files of at most 60 lines with one importer in src": [
      `${store}/node/node.ts`,
      `${store}/store.ts`,
    ],
  });
});

test("words to avoid are counted in comments, identifiers and docs, and nowhere else", () => {
  // README: 1 of 6. Comments of src: 2 of 9. Identifiers of src, each once per file: 2 of 8.
  expect(valuesOf(shape("--root", smallTree()))).toMatchObject({
    "… in docs (Markdown)": perTenThousand(1, 6),
    "… in comments of src": perTenThousand(2, 9),
    "… in identifiers of src": perTenThousand(2, 8),
    "words to avoid per 10,000 in comments, docs, identifiers": perTenThousand(5, 23),
  });
});

test("a traced acquire and release has the same files and calls each time", () => {
  const rows = shape("--traced");
  expect(shape("--traced")).toEqual(rows);
  const begins = { acquire: "src/core/lock-manager.ts", release: "src/core/lease/held-lease.ts" };
  for (const [operation, first] of Object.entries(begins)) {
    const files = rows.find(({ what }) => what === `files of one ${operation}`);
    expect(files?.details).toEqual(expect.arrayContaining([first, "src/clients/ioredis.ts"]));
    expect(files?.details).toHaveLength(files?.value ?? 0);
  }
});

test("each call is attributed to the file whose function is running", () => {
  const root = treeOf({
    "package.json": `{ "type": "module" }`,
    "a.js": [
      `import { later, Made } from "./b.js";`,
      `export async function start() {`,
      `  const made = new Made(() => ({ called: "back" }));`,
      `  const waiting = later(Promise.resolve(1));`,
      `  made.size;`,
      `  try { await Promise.reject(new Error("no")); } catch { made.call(); }`,
      `  made.call();`,
      `  return waiting;`,
      `}`,
    ].join("\n"),
    "b.js": [
      `import { leaf } from "./c.js";`,
      `export async function later(value) { return leaf(await value) + leaf(1); }`,
      `export class Made {`,
      `  constructor(back) { this.back = back; }`,
      `  get size() { return "übung".length; }`,
      `  call() { return this.back(); }`,
      `}`,
    ].join("\n"),
    "c.js": `export const leaf = (value) => value + 1;`,
  });
  expect(traceOf(root, ["a.js", "b.js", "c.js"], "a.js", "start")).toEqual({
    result: 4,
    // The constructor, later(), the getter, and call() twice. The calls made by call() go up.
    calls: ["5 × a.ts → b.ts", "2 × b.ts → c.ts", "2 × b.ts → a.ts"],
    up: ["2 × b.ts → a.ts"],
    entries: 1,
  });
});

test("a file that does not parse makes the measurement fail", () => {
  const root = treeOf({ "src/a.ts": "const = ;" });
  const { status, stderr } = run("--root", root);
  expect(status).not.toBe(0);
  expect(stderr).toContain("src/a.ts");
});

/**
 * Returns a small project: protocol and node import each other, and store.ts imports one of them.
 */
function smallTree(): string {
  const [one, other] = [["he", "ard"].join(""), ["to", "ld"].join("")];
  return treeOf({
    "README.md": `The store ${other} us\nthe end\n`,
    "test/api/index.d.ts": "a\nb\nc\n",
    [`${store}/store.ts`]: `import { vote } from "./protocol/vote.ts";\n${"vote;\n".repeat(9)}`,
    [`${store}/protocol/vote.ts`]: [
      `// It ${one} of the ${other} vote\n`,
      `import { ${other}Node } from "../node/node.ts"; import "../protocol/round.ts";\n`,
      `export const vote = ${other}Node + "${other}";\n`,
    ].join(""),
    [`${store}/protocol/round.ts`]: `import { vote } from "./vote.ts";\nvote;\n${"\n".repeat(60)}`,
    [`${store}/node/node.ts`]: [
      `import type { Store } from "../store.ts";\n`,
      `export const ${other}Node = () => import("../protocol/round.ts") as Store;\n`,
    ].join(""),
    [`${store}/scripts/vote.lua`]: `-- returns the vote\nreturn "${other}"\n`,
  });
}

function treeOf(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "holdfast-shape-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** Instruments the files, calls one function in a new process, and returns the recorded trace. */
function traceOf(root: string, paths: readonly string[], entry: string, name: string): unknown {
  const files = paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  for (const file of files) writeFileSync(join(root, file.path), instrument(file));
  const tools = pathToFileURL(join(projectRoot, "tools", "shape", "/")).href;
  const script = [
    `import { startRecording, stopRecording } from "${tools}recorder.mjs";`,
    `import { transferRows } from "${tools}transfers.mjs";`,
    `const { ${name} } = await import(${JSON.stringify(join(root, entry))});`,
    `startRecording();`,
    `const result = await ${name}();`,
    `const rows = transferRows("call", stopRecording(), ${JSON.stringify(files)}, {});`,
    `const [, , calls, up, entries] = rows;`,
    `const report = { result, calls: calls.details, up: up.details, entries: entries.value };`,
    `console.log(JSON.stringify(report));`,
  ].join("\n");
  writeFileSync(join(root, "main.mjs"), script);
  const { stdout, stderr } = spawnSync(process.execPath, [join(root, "main.mjs")], {
    encoding: "utf8",
    timeout: 50_000,
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

function shape(...args: readonly string[]): Row[] {
  const { status, stdout, stderr } = run("--json", ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return JSON.parse(stdout) as Row[];
}

function run(...args: readonly string[]) {
  const script = join(projectRoot, "tools", "shape", "main.mjs");
  return spawnSync(process.execPath, [script, ...args], { encoding: "utf8", timeout: 50_000 });
}

function valuesOf(rows: readonly Row[]): Record<string, number> {
  return Object.fromEntries(rows.map(({ what, value }) => [what, value]));
}

function perTenThousand(banned: number, words: number): number {
  return Math.round((banned / words) * 100_000) / 10;
}
