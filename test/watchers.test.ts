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

let exitCode: number | undefined;
let closingLine: string | undefined;
let files: Report["testResults"];

beforeAll(async () => {
  const vitest = join(projectRoot, "node_modules", "vitest", "vitest.mjs");
  const config = join(projectRoot, "test", "support", "fixtures", "vitest.config.ts");
  const output = await new Promise<string>((resolve) => {
    const args = [vitest, "run", "--config", config];
    const child = execFile(process.execPath, args, { cwd: projectRoot }, (_error, stdout) => {
      exitCode = child.exitCode ?? undefined;
      resolve(stdout);
    });
  });
  const lines = output.trimEnd().split("\n");
  closingLine = lines.at(-1);
  files = (JSON.parse(lines.find((line) => line.startsWith("{")) ?? "{}") as Report).testResults;
});

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
  const failed = results.length - passed + ["rejection", "warning"].length;
  expect(closingLine).toBe(`${passed} passed, ${failed} failed, 0 skipped`);
  expect(exitCode).toBe(1);
});

function fixture(name: string): Report["testResults"][number] {
  const found = files.find((file) => file.name.endsWith(`/${name}.fixture.ts`));
  if (found === undefined) throw new Error(`the fixture ${name} was not run`);
  return found;
}
