// @ts-check
/**
 * Builds dist/ from src/: the Lua module, then one JavaScript and one .d.ts file per source of the
 * library, then the command line, which is bundled with the packages that it uses.
 */

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Compiles src/ into an empty `outDir`. Tests build into a folder of their own with it, so that
 * they neither trust a stale dist/ nor disturb one another.
 *
 * @param {string} outDir
 * @param {readonly string[]} [flags] more flags for tsc
 * @returns {{ status: number, output: string }}
 */
export function compile(outDir, flags = []) {
  rmSync(outDir, { recursive: true, force: true });
  return run(
    [join("node_modules", "typescript", "bin", "tsc")].concat(
      ["-p", "tsconfig.build.json", "--outDir", outDir],
      flags,
    ),
  );
}

/**
 * Bundles src/cli/ into `outDir`/cli: three entries, and chunks that they load when needed. Only what
 * has native code stays outside.
 *
 * @param {string} outDir
 */
export async function bundleCli(outDir) {
  const cli = join(root, "src", "cli");
  await build({
    root,
    configFile: false,
    logLevel: "error",
    publicDir: false,
    ssr: { noExternal: true },
    build: {
      ssr: true,
      outDir: join(outDir, "cli"),
      emptyOutDir: true,
      target: "node20",
      minify: false,
      // What the packages inside ask for in return.
      license: { fileName: "licenses.md" },
      rollupOptions: {
        input: {
          main: join(cli, "main.ts"),
          watchdog: join(cli, "exec", "watchdog.ts"),
          "demo-worker": join(cli, "demo", "demo-worker.ts"),
        },
        external: ["lmdb"],
        output: {
          entryFileNames: "[name].js",
          // Without a hash: a build has the same names every time.
          chunkFileNames: "part-[name].js",
          // Smaller by half. Names stay: errors are told by theirs.
          minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
        },
      },
    },
  });
}

/** @param {readonly string[]} args */
function run(args) {
  const result = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  return { status: result.status ?? 1, output: result.stdout + result.stderr };
}

async function main() {
  for (const step of [
    () => run([join("scripts", "generate-lua.mjs")]),
    () => compile(join(root, "dist")),
  ]) {
    const { status, output } = step();
    process.stderr.write(output);
    if (status !== 0) {
      process.exitCode = status;
      return;
    }
  }
  await bundleCli(join(root, "dist"));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
