import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { apiFolder, renderApi, renderSurface } from "../scripts/api.mjs";

describe("the public surface", () => {
  test("matches the reviewed snapshot: `npm run api:update` rewrites test/api", () => {
    const rendered = renderApi();
    const committed = existsSync(apiFolder) ? readdirSync(apiFolder) : [];
    expect(committed.toSorted()).toEqual([...rendered.keys()].toSorted());
    for (const [name, text] of rendered) {
      expect(readFileSync(join(apiFolder, name), "utf8"), name).toBe(text);
    }
  });
});

describe("the rendering of the surface", () => {
  const exports = {
    ".": { types: "./dist/index.d.ts" },
    "./part/a": { types: "./dist/part/a.d.ts" },
    "./package.json": "./package.json",
  };
  const files: Record<string, string> = {
    "dist/index.d.ts": `export * from "./core/b.ts";\n`,
    "dist/core/b.d.ts": `/** Why. */\nexport type B = import("./c.js").C; // http://x\n`,
    "dist/core/c.d.ts": `export interface C {\n    readonly c: "// no comment";\n}\n`,
    "dist/core/hidden.d.ts": `export type Hidden = 1;\n`,
    "dist/part/a.d.ts": `import type { B } from "../core/b.ts";\nexport declare const a: B;\n`,
  };
  const render = (changed: Record<string, string> = {}): Map<string, string> =>
    renderSurface(exports, (path) => {
      const text = { ...files, ...changed }[path];
      if (text === undefined) throw new Error(`no ${path}`);
      return text;
    });

  test("follows imports and leaves comments out", () => {
    expect(Object.fromEntries(render())).toEqual({
      "index.d.ts":
        `// dist/index.d.ts\nexport * from "./core/b.ts";\n\n` +
        `// dist/core/b.d.ts\nexport type B = import("./c.js").C; \n\n` +
        `// dist/core/c.d.ts\nexport interface C {\n    readonly c: "// no comment";\n}\n`,
      "part-a.d.ts":
        `// dist/part/a.d.ts\nimport type { B } from "../core/b.ts";\n` +
        `export declare const a: B;\n\n` +
        `// dist/core/b.d.ts: in index.d.ts\n\n// dist/core/c.d.ts: in index.d.ts\n`,
    });
  });

  test("shows a changed signature, even of a nested type, but no changed comment", () => {
    const before = Object.fromEntries(render());
    const deep = render({ "dist/core/c.d.ts": "export interface C {}\n" });
    expect(Object.fromEntries(deep)).not.toEqual(before);
    const comment = render({ "dist/core/b.d.ts": `export type B = import("./c.js").C; // y\n` });
    expect(Object.fromEntries(comment)).toEqual(before);
  });
});
