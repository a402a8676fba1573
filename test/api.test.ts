import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { apiFolder, faultsOfSurface, renderApi, renderSurface } from "../scripts/api.mjs";

describe("the public surface", () => {
  const api = renderApi();

  test("matches the reviewed snapshot: `npm run api:update` rewrites test/api", () => {
    const { rendered } = api;
    const committed = existsSync(apiFolder) ? readdirSync(apiFolder) : [];
    expect(committed.toSorted()).toEqual([...rendered.keys()].toSorted());
    for (const [name, text] of rendered) {
      expect(readFileSync(join(apiFolder, name), "utf8"), name).toBe(text);
    }
  });

  test("has one meaning for each name of a type, and no class that cannot be imported", () => {
    expect(api.faults).toEqual([]);
  });

  test("is small for an application, which has the port of stores elsewhere", () => {
    const root = api.rendered.get("index.d.ts") ?? "";
    expect(root.split("\n").length).toBeLessThanOrEqual(400);
    expect(root).not.toContain("OpenStore {");
    expect(api.rendered.get("store.d.ts")).toContain("export interface OpenStore {");
  });
});

describe("the rendering of the surface", () => {
  const exports = {
    ".": { types: "./dist/index.d.ts" },
    "./part/a": { types: "./dist/part/a.d.ts" },
    "./package.json": "./package.json",
  };
  const files: Record<string, string> = {
    "./dist/index.d.ts": `export type { B } from "./core/b.ts";\n`,
    "./dist/core/b.d.ts":
      `import type { C, D } from "./c.ts";\n` +
      `/** Why. */\nexport type B = C | D; // http://x\nexport interface Unused {}\n`,
    "./dist/core/c.d.ts":
      `export interface C {\n    readonly c: "// no comment";\n}\n` +
      `export interface D {\n    readonly d: 1;\n}\n`,
    "./dist/part/a.d.ts":
      `import type { B } from "../core/b.ts";\nexport type { B } from "../core/b.ts";\n` +
      `export type { D } from "../core/c.ts";\nexport declare const a: B;\n`,
  };
  const reader = (changed: Record<string, string>) => (path: string) => {
    const text = { ...files, ...changed }[path];
    if (text === undefined) throw new Error(`no ${path}`);
    return text;
  };
  const render = (changed: Record<string, string> = {}): Map<string, string> =>
    renderSurface(exports, reader(changed));
  const faults = (changed: Record<string, string>): string[] =>
    faultsOfSurface(exports, reader(changed));

  test("shows what can be reached once, where it is exported first, without comments", () => {
    expect(Object.fromEntries(render())).toEqual({
      "index.d.ts":
        `export type B = C | D;\n\n` +
        `// not exported\ninterface C {\n    readonly c: "// no comment";\n}\n`,
      "part-a.d.ts":
        `export interface D {\n    readonly d: 1;\n}\n\n` +
        `export declare const a: B;\n\n// B: in index.d.ts\n`,
    });
  });

  test("shows a changed signature, even of a nested type, but no changed comment", () => {
    const before = Object.fromEntries(render());
    const c = files["./dist/core/c.d.ts"] ?? "";
    const deep = render({ "./dist/core/c.d.ts": c.replace("no comment", "changed") });
    expect(Object.fromEntries(deep)).not.toEqual(before);
    const comment = render({ "./dist/core/c.d.ts": `/** Other. */\n${c}` });
    expect(Object.fromEntries(comment)).toEqual(before);
  });

  test("finds a type name with two meanings, but accepts twin functions", () => {
    const [name, part] = ["./dist/index.d.ts", "./dist/part/a.d.ts"];
    const twin = "export declare function a(): void;\n";
    expect(faults({ [name]: twin, [part]: twin })).toEqual([]);
    expect(faults({ [name]: "export interface D {}\n" })).toEqual(["D has two meanings"]);
  });

  test("finds a class that can be reached but not imported", () => {
    const text = "export declare class C {}\nexport interface D {}\n";
    expect(faults({ "./dist/core/c.d.ts": text })).toEqual(["the class C is not exported"]);
  });
});
