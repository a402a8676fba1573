import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { buildPrograms } from "../../scripts/build.mjs";
import { type ProgramEnd, runProgram } from "../support/run-program.ts";
import { projectRoot } from "../support/source-files.ts";

/** Limit for a compiler and a dozen processes, while other tests run. */
const boundMs = 240_000;

const program = join(projectRoot, "bench", "start.mjs");

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function run(args: readonly string[], dist: string): Promise<ProgramEnd> {
  const env = { ...process.env, HOLDFAST_BENCH_DIST: pathToFileURL(`${dist}/`).href };
  return runProgram(program, args, env);
}

test(
  "a workload on Holdfast and the floor gives a report with figures for both",
  { timeout: boundMs },
  async () => {
    const [dist, out] = [temporaryFolder(), temporaryFolder()];
    await buildPrograms(dist);
    const few = ["--only", "fenced", "--no-peers", "--nodes", "1", "--rounds", "2"];
    const args = ["sequential", "held", "import", ...few, "--scale", "0.2", "--out", out];
    const { code, output } = await run(args, dist);
    expect({ code, output }).toMatchObject({ code: 0 });

    const { series } = JSON.parse(readFileSync(join(out, "results.json"), "utf8"));
    const seen = series.map(
      (one: { workload: string; label: string; contender: string; problems: object }) =>
        `${one.workload} ${one.label} ${one.contender} ${JSON.stringify(one.problems)}`,
    );
    expect(seen.sort()).toEqual([
      "held 1000 fenced {}",
      "held 1000 floor {}",
      "import fresh process fenced {}",
      "sequential 1 fenced {}",
      "sequential 1 floor {}",
    ]);
    for (const { workload, values } of series) {
      if (workload === "sequential") expect(values.perSecond).toHaveLength(2);
      for (const value of values.perSecond ?? values.importMs) expect(value).toBeGreaterThan(0);
    }

    const page = readFileSync(join(out, "results.md"), "utf8");
    expect(page).toMatch(
      /\| sequential, N = 1, fenced \| ≥ 0\.85 F \| [\d.]+ F \| (\*\*missed\*\*|met) \|/,
    );
    expect(page).toContain("| sequential, N = 5, fenced | ≥ 0.95 F | not measured | – |");
    const plots = readdirSync(join(out, "plots")).sort();
    expect(plots).toEqual(["held-1000-n1.svg", "import-fresh-process-n1.svg", "sequential-n1.svg"]);
    for (const name of plots) expect(page).toContain(`](plots/${name})`);
    expect(readFileSync(join(out, "plots", "held-1000-n1.svg"), "utf8")).toMatch(
      /^<svg [^]*<\/svg>\n$/,
    );
  },
);

test("an unknown argument is reported before any process is started", async () => {
  const { code, output } = await run(["sequental"], "/nowhere");
  expect(code).toBe(1);
  expect(output).toContain("no workload is called sequental");
});
