import { describe, expect, test } from "vitest";
import { rollUpTypes } from "../../scripts/roll-up-types.mjs";

function rollUp(files: Readonly<Record<string, string>>, entries = ["./a.d.ts", "./sub/b.d.ts"]) {
  return rollUpTypes(entries, "./parts/types.d.ts", (path) => {
    const text = files[path];
    if (text === undefined) throw new Error(`no ${path}`);
    return text;
  });
}

describe("declarations", () => {
  test("are written once: in the only entry that needs them, or in the shared file", () => {
    const files = rollUp({
      "./a.d.ts": `import type { Shared } from "./core/shared.ts";\nexport interface A { s: Shared }\n`,
      "./sub/b.d.ts": `export { Shared, type Own as Mine } from "../core/shared.ts";\n`,
      "./core/shared.d.ts":
        `/** Why. */\nexport declare class Shared {\n    #private;\n}\n` +
        `export interface Own {\n}\nexport interface Unused {\n}\n`,
    });
    expect(Object.fromEntries(files)).toEqual({
      "./parts/types.d.ts": `/** Why. */\ndeclare class Shared {\n  #private;\n}\nexport {\n  Shared,\n};\n`,
      "./a.d.ts":
        `import {\n  Shared,\n} from "./parts/types.js";\n` +
        `interface A { s: Shared }\nexport {\n  A,\n};\n`,
      "./sub/b.d.ts":
        `import {\n  Shared,\n} from "../parts/types.js";\n` +
        `interface Own {\n}\nexport {\n  Shared,\n  type Own as Mine,\n};\n`,
    });
  });

  test("of the same name get different names, also if a global has that name", () => {
    const files = rollUp(
      {
        "./a.d.ts":
          `import { x } from "./x.ts";\ninterface Options { a: 1 }\n` +
          `export declare function a(options: Options, from: Error): typeof x;\n`,
        "./x.d.ts":
          `interface Options { x: 1 }\ninterface Error { y: 1 }\n` +
          `export declare const x: { Options: Options, of(Error: Error): Error };\n`,
      },
      ["./a.d.ts"],
    );
    const text = files.get("./a.d.ts") ?? "";
    expect(text).toContain("a(options: Options, from: Error): typeof x");
    expect(text).toContain("interface Options { a: 1 }");
    expect(text).toContain("interface Options2 { x: 1 }");
    expect(text).toContain("interface Error2 { y: 1 }");
    expect(text).toContain("{ Options: Options2, of(Error: Error2): Error2 }");
  });

  test("are unchanged if a type parameter has their name", () => {
    const files = rollUp(
      {
        "./a.d.ts":
          `export interface T { a: 1 }\n` +
          `export declare function f<T, K extends keyof T>(of: { [P in K]: T[P] }): T;\n` +
          `export { T as Other };\n`,
      },
      ["./a.d.ts"],
    );
    expect(files.get("./a.d.ts")).toContain("f<T, K extends keyof T>(of: { [P in K]: T[P] }): T;");
  });

  test("keep overloads together, and import what packages declare", () => {
    const files = rollUp(
      {
        "./a.d.ts":
          `import type { Server } from "node:http";\n` +
          `/** One. */\nexport declare function f(a: 1): Server;\n` +
          `/** Two. */\nexport declare function f(a: 2): Server;\n`,
      },
      ["./a.d.ts"],
    );
    expect(files.get("./a.d.ts")).toBe(
      `import type {\n  Server,\n} from "node:http";\n` +
        `/** One. */\ndeclare function f(a: 1): Server;\n` +
        `/** Two. */\ndeclare function f(a: 2): Server;\nexport {\n  f,\n};\n`,
    );
  });

  test.each([
    ["export default", "export default 1;"],
    ["import(…) types", `export type A = import("./b.ts").B;`],
    ["all of another module", `export * from "./b.ts";`],
    ["several variables in a statement", "export declare const a: 1, b: 2;"],
    ["a name that is not there", `export { B } from "./b.ts";`],
  ])("with %s are rejected", (_what, text) => {
    expect(() => rollUp({ "./a.d.ts": text, "./b.d.ts": "" }, ["./a.d.ts"])).toThrow();
  });
});
