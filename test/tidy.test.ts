import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { renderModule, scriptsFolder } from "../scripts/generate-lua.mjs";
import { type SourceFile, readProject } from "./support/source-files.ts";
import * as rules from "./support/tidy-rules.ts";

const project = readProject();

/** Per rule: what it must report and what it must accept. Paths map to texts. */
interface Sample {
  readonly rule: rules.Rule;
  readonly wrong: Readonly<Record<string, string>>;
  readonly right: Readonly<Record<string, string>>;
}

// Written in pieces, so that this file does not contain what it forbids.
const outside = ["..", "shared", "notes.md"].join("/");
const machinePath = ["", "work", "main"].join("/");
const server = ["registry", "example", "com"].join(".");
const person = ["who", "ever"].join("");
const speak = ["te", "ll"].join("");
const spoken = ["to", "ld"].join("");
const unfinished = ["TO", "DO"].join("");
const broken = ["FIX", "ME"].join("");
const skipIf = ["test", "skipIf"].join(".");
const runIf = ["test", "runIf"].join(".");
const skip = ["context", "skip"].join(".");

const samples: Readonly<Record<string, Sample>> = {
  "imports follow the layers": {
    rule: rules.importsFollowTheLayers,
    wrong: {
      "src/index.ts": `export { redis } from "./stores/redis/index.ts";`,
      "src/store.ts": `export { nodeRuntime } from "./runtime/b.ts";`,
      "src/core/a.ts": `import { b } from "../runtime/b.ts";`,
      "src/core/type.ts": `export type A = import("../stores/memory/a.ts").A;`,
      "src/core/dynamic.ts": `export const a = () => import("../runtime/b.ts");`,
      "src/core/root.ts": `import "../index.ts";`,
      "src/runtime/a.ts": `import "../stores/memory/index.ts";`,
      "src/stores/memory/a.ts": `import type { B } from "../redis/b.ts";`,
      "src/stores/postgres/a.ts": `import "../../clients/contract.ts";`,
      "src/stores/etcd/a.ts": `import "../../fencing/guard.ts";`,
      "src/stores/redis/a.ts": `export * from "../../runtime/b.ts";`,
      "src/clients/iovalkey.ts": `import "../core/errors.ts";`,
      "src/clients/recognise.ts": `import "../core/errors.ts";`,
      "src/election/a.ts": `import "../stores/memory/index.ts";`,
      "src/schedule/a.ts": `import "../runtime/b.ts";`,
      "src/once/a.ts": `import "../stores/redis/index.ts";`,
      "src/telemetry/a.ts": `import "../runtime/b.ts";`,
      "src/testing/a.ts": `import "../clients/ioredis.ts";`,
      "src/simulator/a.ts": `import "../runtime/b.ts";`,
      "src/fencing/a.ts": `import "../stores/redis/index.ts";`,
      "src/testing/cli.ts": `import "../cli/main.ts";`,
      "src/cli/a.ts": `import "../dashboard/server.ts";`,
      "src/elsewhere/a.ts": ``,
      "src/loose.ts": ``,
    },
    right: {
      "src/index.ts": `export * from "./core/a.ts"; import "./runtime/b.ts";`,
      "src/store.ts": `export type { A } from "./core/a.ts";`,
      "src/core/a.ts": `import "./nested/b.ts"; // import "../runtime/b.ts"`,
      "src/core/nested/b.ts": `import "../a.ts"; const text = 'import "../../runtime/b.ts"';`,
      "src/runtime/a.ts": `import "../core/a.ts"; import "./b.ts";`,
      "src/stores/redis/protocol/a.ts": `import "../node.ts"; import "../../../clients/ioredis.ts";`,
      "src/stores/memory/a.ts": `import "./b.ts"; import "../../core/a.ts";`,
      "src/stores/postgres/a.ts": `import "../../fencing/a.ts"; import "../../core/a.ts";`,
      "src/clients/ioredis.ts": `import "./contract.ts";`,
      "src/clients/recognise.ts": `import "./ioredis.ts"; import "./contract.ts";`,
      "src/testing/a.ts": `import "../stores/memory/a.ts"; import "../clients/contract.ts";`,
      "src/fencing/a.ts": `import "./guard.ts"; import "../clients/recognise.ts";`,
      "src/election/a.ts": `import "./b.ts"; import "../core/a.ts";`,
      "src/once/a.ts": `import "../fencing/a.ts"; import "../core/a.ts";`,
      "src/cli/main.ts": `import "../index.ts"; import "./commands/a.ts";`,
    },
  },
  "folders of the Redis store follow their order": {
    rule: rules.redisFoldersFollowTheirOrder,
    wrong: {
      "src/stores/redis/commands/a.ts": `import type { B } from "../protocol/b.ts";`,
      "src/stores/redis/node/a.ts": `export * from "../protocol/b.ts";`,
      "src/stores/redis/protocol/type.ts": `export type A = import("../queue/b.ts").A;`,
      "src/stores/redis/protocol/loose.ts": `import { b } from "../store.ts";`,
      "src/stores/redis/admission/a.ts": `import "../queue/b.ts";`,
      "src/stores/redis/failover/a.ts": `export const a = () => import("../doctor/b.ts");`,
      "src/stores/redis/doctor/a.ts": `import "../groups/b.ts";`,
      "src/stores/redis/elsewhere/a.ts": ``,
      "src/stores/redis/node/elsewhere.ts": `import "../elsewhere/a.ts";`,
      ...Object.fromEntries(
        "abcdefgh".split("").map((name) => [`src/stores/redis/${name}.ts`, ""]),
      ),
      "src/stores/redis/ninth.ts": ``,
    },
    right: {
      "src/stores/redis/scripts/generated.ts": ``,
      "src/stores/redis/commands/a.ts": `import "../scripts/generated.ts"; import "./b.ts";`,
      "src/stores/redis/protocol/a.ts": `import "../../../core/a.ts"; import "../node/b.ts";`,
      "src/stores/redis/queue/a.ts": `import type { B } from "../protocol/b.ts";`,
      "src/stores/redis/groups/a.ts": `import "../failover/b.ts"; import "../commands/a.ts";`,
      "src/stores/redis/store.ts": `import "./groups/a.ts"; import "./options.ts";`,
      "src/stores/memory/a.ts": `import "./b/c.ts";`,
    },
  },
  "sources import no packages": {
    rule: rules.sourcesImportNoPackages,
    wrong: {
      "src/clients/ioredis.ts": `import type { Redis } from "ioredis";`,
      "src/core/a.ts": `await import("@valkey/valkey-glide");`,
    },
    right: {
      "src/runtime/a.ts": `import "node:timers"; import "crypto"; import "./b.ts";`,
      "src/cli/main.ts": `import "anything";`,
    },
  },
  "pure code touches nothing outside": {
    rule: rules.pureCodeTouchesNothingOutside,
    wrong: {
      "src/core/date.ts": `const a = Date.now();`,
      "src/core/type.ts": `export interface A { readonly at: Date }`,
      "src/core/shorthand.ts": `export const a = { process };`,
      "src/core/random.ts": `const a = Math.random();`,
      "src/core/quoted.ts": `const a = Math["random"]();`,
      "src/core/global.ts": `globalThis.setTimeout(() => {});`,
      "src/core/template.ts": "const a = `${performance.now()}`;",
      "src/core/typeof.ts": `let a: typeof crypto;`,
      "src/stores/redis/a.ts": `setTimeout(() => {}, 1);`,
      "src/stores/memory/a.ts": `setInterval(() => {}, 1);`,
      "src/stores/memory/b.ts": `const later = setImmediate;`,
      "src/simulator/a.ts": `const a = AbortSignal.timeout(1);`,
      "src/simulator/b.ts": `console.log(1);`,
      "src/simulator/c.ts": `import { createHash } from "node:crypto";`,
      "src/simulator/d.ts": `import { createHash } from "crypto";`,
    },
    right: {
      "src/core/comment.ts": `// Date.now() and Math.random()\n/* process */ const a = "console";`,
      "src/core/member.ts": `node.process.console(clock.performance); const a = { Date: 1 };`,
      "src/core/method.ts": `interface A { setTimeout(): void } const a = { process() {} };`,
      "src/core/near.ts": `Math.round(1); new AbortController(); const setTimer = 1;`,
      "src/core/renamed.ts": `import { Date as Day } from "./day.ts";`,
      "src/runtime/a.ts": `setTimeout(() => Date.now(), Math.random());`,
      "src/stores/embedded/a.ts": `import "node:fs"; process.pid;`,
      "src/stores/postgres/a.ts": `setTimeout(() => {}, 1);`,
    },
  },
  "sources are small": {
    rule: rules.sourcesAreSmall,
    wrong: {
      "src/core/long.ts": "// line\n".repeat(301),
      "src/core/wide.ts": `// ${"x".repeat(98)}`,
      "src/stores/redis/scripts/wide.lua": `-- ${"x".repeat(98)}`,
    },
    right: {
      "src/core/a.ts": "// line\n".repeat(300),
      "src/core/b.ts": `// ${"x".repeat(97)}\n`,
      "src/stores/redis/scripts/generated.ts": `// ${"x".repeat(200)}`,
      "test/long.test.ts": "// line\n".repeat(500),
    },
  },
  "names are kebab-case": {
    rule: rules.namesAreKebabCase,
    wrong: {
      "src/core/leaseState.ts": "",
      "src/Core/lease.ts": "",
      "test/some_thing.test.ts": "",
      "src/core/_part.ts": "",
    },
    right: {
      "src/core/lease-state.ts": "",
      "src/stores/redis/scripts/_part.lua": "",
      "test/api/fencing-redis.d.ts": "",
      "README.md": "",
    },
  },
  "names say what is inside": {
    rule: rules.namesSayWhatIsInside,
    wrong: { "src/core/utils.ts": "", "test/helpers/a.ts": "", "src/core/time-util.ts": "" },
    right: { "src/core/utility-of-force.ts": "", "src/core/lease.ts": "" },
  },
  "sources leave nothing to do": {
    rule: rules.sourcesLeaveNothingToDo,
    wrong: { "src/core/a.ts": `// ${unfinished}: later`, "src/b.lua": `-- ${broken}` },
    right: { "src/core/a.ts": `const TODOS = 1;`, "docs/a.md": unfinished },
  },
  "files use plain words": {
    rule: rules.filesUsePlainWords,
    wrong: {
      "src/core/a.ts": `// ${person} waits.`,
      "src/core/b.ts": `const ${spoken} = 1;`,
      "src/core/c.ts": `this.#${speak}First();`,
      "src/d.lua": `-- ${person} waits`,
      "test/a.test.ts": `test("the holder is ${spoken} of its loss", () => {});`,
      "tools/b.mjs": `function when${spoken[0]?.toUpperCase()}${spoken.slice(1)}() {}`,
      "faults/c.c": `int ${spoken}_again;`,
      "docs/d.md": `${person} is ${spoken}`,
    },
    right: {
      "src/core/a.ts": "// Each waiter receives a notification. const teller = hearing;",
      "test/a.test.ts": "const year = intelligent;",
    },
  },
  "files stand alone": {
    rule: rules.filesStandAlone,
    wrong: {
      "README.md": `see ${outside}`,
      "test/a.test.ts": `cd("${machinePath}/x")`,
      ".npmrc": `location=https://${server}/`,
    },
    right: { "README.md": "a shared folder, how it does its work/life", "src/a.ts": "./work/a" },
  },
  "tests are skipped by requirements": {
    rule: rules.testsAreSkippedByRequirements,
    wrong: {
      "test/a.test.ts": `${skipIf}(!hasTool)("a", () => {});`,
      "test/b.test.ts": `import "../support/requirements.ts";\n${runIf}(isLinux)("b", () => {});`,
      "test/c.test.ts": `if (tool === undefined) ${skip}("no tool");`,
    },
    right: {
      "test/a.test.ts": `import "../support/requirements.ts";\n${skipIf}(!hasTool)("a", f);`,
      "test/support/b.ts": `${skip}("no tool");`,
    },
  },
  "Lua scripts have a header": {
    rule: rules.luaScriptsHaveAHeader,
    wrong: {
      "src/stores/redis/scripts/a.lua": "-- KEYS[1]: k\n-- ARGV[1]: v\nreturn 1 -- Returns 1\n",
      "src/stores/redis/scripts/b.lua": "-- ARGV none. Returns: 1\nreturn KEYS[1]\n",
      "src/stores/redis/scripts/c.lua": "",
    },
    right: {
      "src/stores/redis/scripts/a.lua": "-- KEYS[1]: k\n-- ARGV: none\n-- Returns 1\nreturn 1\n",
      "src/stores/redis/scripts/_part.lua": "local a = 1\n",
    },
  },
  "relative links lead somewhere": {
    rule: rules.relativeLinksLead,
    wrong: {
      "README.md": "[a](docs/missing.md)",
      "docs/a.md": "[up](../docs/gone.md#part)\n\n[ref]: ./nowhere.md\n",
      "CONTRIBUTING.md": '<img src="docs/none.png">',
    },
    right: {
      "README.md": "[a](docs/a.md#part), [b](./docs/), [c](https://example.com/x), [d](#here)",
      "docs/a.md": "[up](../README.md 'title')\n\n```md\n[no](gone.md)\n```\n`[no](gone.md)`",
    },
  },
  "the package has no dependencies": {
    rule: rules.packageHasNoDependencies,
    wrong: { "package.json": `{ "dependencies": { "a": "1" }, "peerDependencies": { "b": "1" } }` },
    right: {
      "package.json": `{ "dependencies": {}, "devDependencies": { "a": "1" },
        "peerDependencies": { "b": "1" }, "peerDependenciesMeta": { "b": { "optional": true } } }`,
    },
  },
  "the lockfile names no server": {
    rule: rules.lockfileNamesNoServer,
    wrong: { "package-lock.json": `{ "packages": { "a": { "resolved": "https://x/a.tgz" } } }` },
    right: { "package-lock.json": `{ "packages": { "a": { "integrity": "sha512-x" } } }` },
  },
  "the lockfile is complete": {
    rule: rules.lockfileIsComplete,
    wrong: {
      "package-lock.json": `{ "packages": { "node_modules/a": {
        "optionalDependencies": { "a-darwin-arm64": "1.0.0" } } } }`,
    },
    right: {
      "package-lock.json": `{ "packages": { "node_modules/a-darwin-arm64": {}, "node_modules/a": {
        "optionalDependencies": { "a-darwin-arm64": "1.0.0" } } } }`,
    },
  },
};

describe.each(Object.entries(samples))("%s", (_name, { rule, wrong, right }) => {
  test("this project keeps the rule", () => {
    expect(rule(project)).toEqual([]);
  });

  test.each(Object.keys(wrong))("reports the violation in %s", (path) => {
    expect(rule(asFiles(wrong)).filter((complaint) => complaint.startsWith(path))).not.toEqual([]);
  });

  test("accepts correct files", () => {
    expect(rule(asFiles(right))).toEqual([]);
  });
});

test("every rule has a sample", () => {
  const known = new Set(Object.values(samples).map(({ rule }) => rule));
  const all = Object.values(rules).filter((value) => typeof value === "function");
  expect(all.filter((rule) => !known.has(rule))).toEqual([]);
});

test("a file that does not parse is an error, not a pass", () => {
  const files = asFiles({ "src/core/a.ts": "const = ;" });
  expect(() => rules.pureCodeTouchesNothingOutside(files)).toThrow("src/core/a.ts");
});

describe("the generated Lua module", () => {
  test("is up to date", () => {
    const present = readFileSync(join(scriptsFolder, "generated.ts"), "utf8");
    expect(present === renderModule(scriptsFolder), "run `npm run generate`").toBe(true);
  });

  test("inlines parts, drops comments and indentation, and has the right SHA-1", () => {
    const folder = luaFolder({
      "_owner.lua": "-- a part\nlocal function owner(key)\n  return key\nend\n",
      "plain-acquire.lua": "-- KEYS\n\n-- @include owner\n  return owner(`x`) -- why\n",
    });
    const module = renderModule(folder);
    expect(module).toMatch(/^\/\/ generated by scripts\/generate-lua\.mjs; do not edit\n/);
    expect(module).toContain("export const plainAcquire: Script = {");
    expect(module).toContain(`name: "plain-acquire"`);
    expect(module).toContain("const ownerPart = `local function owner(key)\nreturn key\nend`;");
    expect(module).toContain("  source: `${ownerPart}\nreturn owner(\\`x\\`) -- why`,");
    // printf 'local function owner(key)\nreturn key\nend\nreturn owner(`x`) -- why' | sha1sum
    expect(module).toContain(`sha: "a2228553fc23f39011a28d4e2c694a75bb5e767b"`);
    expect(module).not.toContain("export const owner");
  });

  test("has the SHA-1 of its text, also with parts in parts", async () => {
    const folder = luaFolder({
      "_inner.lua": "local a = '${x}'",
      "_outer.lua": "-- @include inner\nlocal b = a",
      "one.lua": "-- @include outer\nreturn b",
      "two.lua": "-- @include inner\n-- @include outer\nreturn a .. b",
    });
    const path = join(folder, "generated.ts");
    writeFileSync(path, renderModule(folder));
    const { one, two } = (await import(path)) as Record<string, { source: string; sha: string }>;
    const [inner, outer] = ["local a = '${x}'", "local a = '${x}'\nlocal b = a"];
    expect(one?.source).toBe(`${outer}\nreturn b`);
    expect(two?.source).toBe(`${inner}\n${outer}\nreturn a .. b`);
    for (const script of [one, two]) {
      const sha = createHash("sha1")
        .update(script?.source ?? "")
        .digest("hex");
      expect(script?.sha).toBe(sha);
    }
  });

  test("changes with its sources", () => {
    const before = renderModule(luaFolder({ "a.lua": "return 1" }));
    expect(renderModule(luaFolder({ "a.lua": "return 2" }))).not.toBe(before);
  });

  test.each([
    ["a part that is not there", { "a.lua": "-- @include gone\nreturn 1" }, "a.lua:1"],
    ["parts in a circle", { "a.lua": "-- @include b", "_b.lua": "-- @include b" }, "itself"],
    ["text over several lines", { "a.lua": "return [[\n  x\n]]" }, "a.lua:1"],
    ["a comment over several lines", { "a.lua": "--[[\nx\n]]\nreturn 1" }, "a.lua:1"],
    ["a part without code", { "a.lua": "-- @include b\nreturn 1", "_b.lua": "" }, "_b.lua"],
    ["a script without code", { "a.lua": "-- nothing" }, "a.lua"],
    ["a name that is not kebab-case", { "aB.lua": "return 1" }, "aB.lua"],
  ])("refuses %s", (_what, files, message) => {
    const folder = luaFolder(files);
    expect(() => renderModule(folder)).toThrow(message);
  });
});

function asFiles(texts: Readonly<Record<string, string>>): SourceFile[] {
  return Object.entries(texts).map(([path, text]) => ({ path, text }));
}

function luaFolder(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-lua-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
