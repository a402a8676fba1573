import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildPackage } from "../scripts/build.mjs";
import { storeConformance } from "../src/testing/index.ts";
import { projectRoot } from "./support/source-files.ts";

/**
 * The package as users get it: built and packed in its own folder, installed into an empty project
 * without a network, and examined from there.
 */

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

const manifest = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as {
  readonly files: readonly string[];
  readonly exports: Readonly<Record<string, string | { types: string; default: string }>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const subpaths = Object.keys(manifest.exports).filter((subpath) => subpath !== "./package.json");
const specifiers = subpaths.map((subpath) => subpath.replace(/^\./, "holdfast"));

/** Limits for an installation: files to write, and bytes. */
const filesMax = 74;
const unpackedBytesMax = 1_060_000;
const folder = mkdtempSync(join(tmpdir(), "holdfast-package-"));
const staging = join(folder, "staging");
const consumer = join(folder, "consumer");
let packed: Packed;

beforeAll(async () => {
  await buildPackage(join(staging, "dist"));
  for (const name of ["package.json", ...manifest.files]) {
    const path = join(projectRoot, name);
    if (name !== "dist" && existsSync(path)) cpSync(path, join(staging, name));
  }
  const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const { stdout } = await run("npm", pack, staging);
  packed = onlyOf(JSON.parse(stdout) as Packed[] | Record<string, Packed>);

  mkdirSync(consumer);
  writeFileSync(join(consumer, "package.json"), `{ "private": true }`);
  const install = ["install", "--offline", "--ignore-scripts", tarball()];
  await run("npm", install, consumer);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the tarball", () => {
  test("contains the built files and those for readers, nothing else", () => {
    const paths = packed.files.map(({ path }) => path);
    const strange = paths.filter(
      (path) => !/^dist\/[a-z0-9/-]+(\.d\.ts|\.js|\.js\.map)$/.test(path),
    );
    const known = ["LICENSE", "README.md", "dist/cli/licenses.md", "package.json"];
    expect(strange.toSorted()).toEqual(known);
    expect(paths.filter((path) => /\btest\b/.test(path))).toEqual([]);
  });

  test("contains every file that `exports` names", () => {
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : Object.values(target),
    );
    const paths = new Set(packed.files.map(({ path }) => `./${path}`));
    expect(targets.filter((target) => !paths.has(target))).toEqual([]);
  });

  test(`has at most ${filesMax} files and ${unpackedBytesMax / 1000} kB`, () => {
    const { size, unpackedSize, files } = packed;
    console.log(`package: ${size} bytes packed, ${unpackedSize} unpacked, ${files.length} files`);
    expect(files.length).toBeLessThanOrEqual(filesMax);
    expect(unpackedSize).toBeLessThanOrEqual(unpackedBytesMax);
  });

  test("lists every package that is bundled into the command line, with its license", () => {
    const text = readFileSync(join(staging, "dist", "cli", "licenses.md"), "utf8");
    for (const name of ["commander", "picocolors", "ioredis", "redis-parser", "denque"]) {
      expect(text).toMatch(new RegExp(`^## ${name} - .*\\((MIT|ISC|Apache-2.0)\\)$`, "m"));
    }
    expect(text.match(/Permission is hereby granted, free of charge/g)).toHaveLength(1);
    expect(text).toContain("Copyright (c) 2015-2022 Zihua Li");
    expect(text).not.toMatch(/\(GPL|\(AGPL|UNLICENSED/);
  });
});

describe("an installation without any peer", () => {
  test("installs no other package", () => {
    const installed = readdirSync(join(consumer, "node_modules"));
    expect(installed.filter((name) => !name.startsWith("."))).toEqual(["holdfast"]);
  });

  test.each(specifiers)("%s loads by import and by require, with the same names", async (name) => {
    const quoted = JSON.stringify(name);
    const print = `console.log(JSON.stringify(Object.keys(loaded).filter((key) => key !== "__esModule").sort()))`;
    const imported = await node("module", `import * as loaded from ${quoted}; ${print}`);
    const required = await node("commonjs", `const loaded = require(${quoted}); ${print}`);
    expect(imported.stderr).toBe("");
    expect(JSON.parse(imported.stdout)).not.toEqual([]);
    expect(required.stdout).toBe(imported.stdout);
  });

  test("modules that several entries share are loaded once, so each error has one class", async () => {
    const code = `
      import { createLocks, InvalidOptionError } from "holdfast";
      import { memory } from "holdfast/memory";
      import { redis } from "holdfast/redis";
      const refusals = [() => memory({ maxTtl: 1 }), () => redis(1), () => createLocks(1)];
      for (const call of refusals) {
        try { call(); } catch (error) { console.log(error instanceof InvalidOptionError); }
      }`;
    expect((await node("module", code)).stdout).toBe("true\ntrue\ntrue\n");
  });

  test("a stack trace has our names, and the lines of the sources if source maps are enabled", async () => {
    const code = `
      import { createLocks } from "holdfast";
      import { memory } from "holdfast/memory";
      const store = memory();
      const open = (context) => {
        const opened = store.open(context);
        opened.extend = async () => ({ kind: "gone" });
        return opened;
      };
      const lease = await createLocks({ ...store, open }).acquire("a");
      await lease.extend().catch((error) => console.log(error.stack));`;
    const names = ["lose", "apply", "extended", "extendNow"];
    const plain = await node("module", code);
    for (const name of names) expect(plain.stdout).toContain(`.${name} (`);
    const mapped = await node("module", code, ["--enable-source-maps"]);
    const path = join("src", "core", "lease", "held-lease.ts");
    const lines = readFileSync(join(projectRoot, path), "utf8").split("\n");
    const traced = [...mapped.stdout.matchAll(/src\/core\/lease\/held-lease\.ts:(\d+)/g)].map(
      (match) => lines[Number(match[1]) - 1]?.trim(),
    );
    expect(traced).toEqual(
      expect.arrayContaining([
        expect.stringContaining("new LeaseLostError("),
        expect.stringContaining('this.lose("taken")'),
        expect.stringContaining("this.apply(outcome"),
      ]),
    );
  });

  test("package.json can be read", async () => {
    const { stdout } = await node(
      "commonjs",
      `console.log(require("holdfast/package.json").version)`,
    );
    expect(stdout).toMatch(/^\d+\.\d+\.\d+/);
  });

  test("the command line runs, and names the package that is missing", async () => {
    const bin = join("node_modules", ".bin", "holdfast");
    const help = await run(join(consumer, bin), ["--help"], consumer);
    expect(help.stdout).toMatch(/^Usage: holdfast /);
    const locked = run(join(consumer, bin), ["ls", "--store", "embedded:./locks"], consumer);
    await expect(locked).rejects.toThrow("needs the package lmdb, which is not installed");
  });

  test("each command that needs the package lmdb names it in one line, before anything runs", async () => {
    const bin = join(consumer, "node_modules", ".bin", "holdfast");
    const ran = join(consumer, "ran");
    for (const args of [["exec", "r", "--", "touch", ran], ["ls"], ["watch"], ["demo"]]) {
      const failed: unknown = await run(bin, args, consumer).catch((error: unknown) => error);
      expect(failed).toMatchObject({ cause: { code: 81 } });
      const advice =
        "holdfast: the embedded store needs the package lmdb, which is not installed: ";
      const command = [bin, ...args].join(" ");
      expect((failed as Error).message).toBe(`${command}\n${advice}npm install lmdb\n`);
    }
    expect(existsSync(ran)).toBe(false);
  });

  test("files that are not public cannot be imported", async () => {
    const deep = node("module", `await import("holdfast/dist/index.js")`);
    await expect(deep).rejects.toThrow("ERR_PACKAGE_PATH_NOT_EXPORTED");
  });
});

describe("a store of the user's own", () => {
  test("compiles with holdfast/store alone, and passes the conformance suite", async () => {
    linkTypes("@types", "node");
    linkTypes("undici-types");
    const guide = readFileSync(join(projectRoot, "docs", "guides", "writing-a-store.md"), "utf8");
    const [, store = ""] = /<!-- runnable: store -->\n+```ts\n([^]*?)^```$/m.exec(guide) ?? [];
    expect(store).toContain("export function tableStore(): Store");
    writeFileSync(join(consumer, "store.mts"), store);
    const strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
    const target = ["--target", "es2022", "--module", "nodenext", "--types", "node"];
    const tsc = tool("typescript", "bin", "tsc");
    await run(process.execPath, [tsc, ...strict, ...target, "store.mts"], consumer);
    const suite = `
      import { createLocks } from "holdfast";
      import { manualRuntime, storeConformance } from "holdfast/testing";
      import { tableStore } from "./store.mjs";
      for (const { name, run } of storeConformance) {
        const store = tableStore();
        const { capabilities, maxTtlMs } = store;
        const { runtime, clock } = manualRuntime();
        const open = async (defaults) => createLocks(store, { ...defaults, runtime });
        const advance = (ms) => clock.advance(ms);
        await run({ open, advance, capabilities, maxTtlMs, namespace: "own" });
        console.log(name);
      }`;
    writeFileSync(join(consumer, "suite.mjs"), suite);
    const { stdout } = await run(process.execPath, ["suite.mjs"], consumer);
    expect(stdout.trimEnd().split("\n")).toEqual(storeConformance.map(({ name }) => name));
  });
});

describe("the types", () => {
  test.each(["nodenext", "bundler"])("compile strictly for a user with %s", async (resolution) => {
    linkTypes("@types", "node");
    linkTypes("undici-types");
    const lines = specifiers.map((name, index) => `export * as e${index} from "${name}";`);
    writeFileSync(join(consumer, "index.mts"), lines.join("\n"));
    const config = {
      compilerOptions: {
        target: "es2022",
        module: resolution === "bundler" ? "esnext" : "nodenext",
        moduleResolution: resolution,
        types: ["node"],
        strict: true,
        noEmit: true,
        // Finds errors in our declarations, such as types of a client that is not installed.
        skipLibCheck: false,
      },
      files: ["index.mts"],
    };
    writeFileSync(join(consumer, "tsconfig.json"), JSON.stringify(config));
    await run(process.execPath, [tool("typescript", "bin", "tsc"), "-p", "."], consumer);
  });

  test("resolve in every mode that ESM has (attw)", async () => {
    const attw = tool("@arethetypeswrong", "cli", "dist", "index.js");
    const flags = ["--profile", "esm-only", "--no-color", "--no-emoji", "--format", "ascii"];
    await run(process.execPath, [attw, tarball(), ...flags], folder);
  });
});

test("publint reports no problem", async () => {
  const { messages } = await publint({ pkgDir: staging, strict: true, pack: false });
  expect(messages.filter(({ type }) => type !== "suggestion")).toEqual([]);
});

/** Returns the only package: npm 11 lists what it packed, npm 12 keys it by name. */
function onlyOf(listed: readonly Packed[] | Record<string, Packed>): Packed {
  const [only] = Object.values(listed);
  if (only === undefined) throw new Error("npm pack printed nothing");
  return only;
}

function tarball(): string {
  return join(folder, packed.filename);
}

function tool(...path: readonly string[]): string {
  return join(projectRoot, "node_modules", ...path);
}

function linkTypes(...path: readonly string[]): void {
  const link = join(consumer, "node_modules", ...path);
  if (existsSync(link)) return;
  mkdirSync(join(link, ".."), { recursive: true });
  symlinkSync(tool(...path), link, "dir");
}

function node(inputType: string, code: string, flags: readonly string[] = []): Promise<Output> {
  return run(process.execPath, [...flags, `--input-type=${inputType}`, "-e", code], consumer);
}

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program. Rejects with everything that it printed if it fails. */
function run(program: string, args: readonly string[], cwd: string): Promise<Output> {
  const env = { ...process.env, NODE_OPTIONS: "", npm_config_loglevel: "error" };
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, env, timeout: 100_000 }, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr });
      else reject(new Error(`${program} ${args.join(" ")}\n${stdout}${stderr}`, { cause: error }));
    });
  });
}
