import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPrograms } from "../../scripts/build.mjs";

let folder = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-exit-"));
  await buildPrograms(join(folder, "dist"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Runs a program in its own process. Rejects, and kills the program, if it does not end by itself.
 */
async function run(name: string, lines: readonly string[]): Promise<string> {
  const path = join(folder, name);
  const imports = [
    'import { createLocks } from "./dist/index.js";',
    'import { memory } from "./dist/stores/memory/index.js";',
  ];
  writeFileSync(path, [...imports, ...lines].join("\n"));
  const { stdout } = await promisify(execFile)(process.execPath, [path], { timeout: 30_000 });
  return stdout;
}

test("a renewed lease does not keep the process alive", async () => {
  const output = await run("holding.js", [
    'const locks = createLocks(memory(), { ttl: "30s", renew: true });',
    'const lease = await locks.acquire("a");',
    "console.log(lease.state, lease.signal.aborted);",
  ]);
  expect(output).toBe("held false\n");
});

test("a call that waits for a lock keeps the process alive", async () => {
  const output = await run("waiting.js", [
    "const locks = createLocks(memory());",
    'await locks.acquire("a");',
    'const wait = locks.acquire("a", { wait: 300 });',
    "console.log(await wait.catch((error) => error.code));",
  ]);
  expect(output).toBe("ACQUIRE_TIMEOUT\n");
});

test("a renewal that cannot reach its store does not end the process", async () => {
  const output = await run("failing.js", [
    "const store = memory();",
    "const open = (context) => {",
    "  const opened = store.open(context);",
    "  opened.extend = () => Promise.reject(new Error('away'));",
    "  return opened;",
    "};",
    "const locks = createLocks({ ...store, open }, { ttl: 100, renew: true });",
    'const lease = await locks.acquire("a");',
    "await new Promise((resolve) => {",
    "  const alive = setTimeout(resolve, 60_000);",
    '  lease.signal.addEventListener("abort", () => (clearTimeout(alive), resolve()));',
    "});",
    "console.log(lease.state);",
  ]);
  expect(output).toBe("lost\n");
});
