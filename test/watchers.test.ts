import { execFile } from "node:child_process";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { projectRoot } from "./support/source-files.ts";

/**
 * The checks that watch the other tests (support/leaks.ts, support/no-unhandled-rejections.ts, the
 * closing line) must fail here, on fixtures that leave things behind.
 */

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

interface Run {
  readonly exitCode: number | undefined;
  readonly closingLine: string | undefined;
  readonly files: Report["testResults"];
}

let exitCode: number | undefined;
let closingLine: string | undefined;
let files: Report["testResults"];

beforeAll(async () => {
  ({ exitCode, closingLine, files } = await runFixtures({ CI: "" }));
});

/** Runs all fixtures, or those whose name contains one of `only`. */
async function runFixtures(env: NodeJS.ProcessEnv, ...only: readonly string[]): Promise<Run> {
  const vitest = join(projectRoot, "node_modules", "vitest", "vitest.mjs");
  const config = join(projectRoot, "test", "support", "fixtures", "vitest.config.ts");
  const args = [vitest, "run", "--config", config, ...only];
  const options = { cwd: projectRoot, env: { ...process.env, ...env } };
  const done = await new Promise<{ readonly code: number | null; readonly output: string }>(
    (resolve) => {
      const child = execFile(process.execPath, args, options, (_error, stdout) => {
        resolve({ code: child.exitCode, output: stdout });
      });
    },
  );
  const lines = done.output.trimEnd().split("\n");
  const report = lines.find((line) => line.startsWith("{")) ?? "{}";
  return {
    exitCode: done.code ?? undefined,
    closingLine: lines.at(-1),
    files: (JSON.parse(report) as Report).testResults,
  };
}

test.each(["leaks", "library"])("a test that leaves something behind fails (%s)", (name) => {
  const results = fixture(name).assertionResults;
  expect(results.length).toBeGreaterThan(0);
  expect(results.map(({ title, status }) => [title, status])).toEqual(
    results.map(({ title }) => [title, title.startsWith("leaky") ? "failed" : "passed"]),
  );
});

test.each(["rejection", "warning"])(
  "a file that causes a %s fails although its tests pass",
  (name) => {
    expect(fixture(name).assertionResults.map(({ status }) => status)).toEqual(["passed"]);
    expect(fixture(name).status).toBe("failed");
  },
);

test("the closing line counts a file that fails without a failed test", () => {
  const results = files.flatMap(({ assertionResults }) => assertionResults);
  const passed = results.filter(({ status }) => status === "passed").length;
  const skipped = results.filter(({ status }) => status === "skipped").length;
  expect(skipped).toBe(3);
  const failed = results.length - passed - skipped + ["rejection", "warning"].length;
  expect(closingLine).toBe(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  expect(exitCode).toBe(1);
});

test("tests that need a missing tool are skipped and counted, and fail on CI", async () => {
  const names = ["requirement", "missing-tool"];
  const here = await runFixtures({ CI: "" }, ...names);
  expect(here).toMatchObject({ exitCode: 0, closingLine: "1 passed, 0 failed, 2 skipped" });
  const onCi = await runFixtures({ CI: "true" }, ...names);
  expect(onCi).toMatchObject({ exitCode: 1, closingLine: "1 passed, 2 failed, 0 skipped" });
});

test("a test that is skipped in another way fails the run on CI, too", async () => {
  expect(await runFixtures({ CI: "" }, "skipped")).toMatchObject({ exitCode: 0 });
  const onCi = await runFixtures({ CI: "true" }, "skipped");
  expect(onCi).toMatchObject({ exitCode: 1, closingLine: "1 passed, 0 failed, 1 skipped" });
});

function fixture(name: string): Report["testResults"][number] {
  const found = files.find((file) => file.name.endsWith(`/${name}.fixture.ts`));
  if (found === undefined) throw new Error(`the fixture ${name} was not run`);
  return found;
}
