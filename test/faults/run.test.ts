import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findingsOf } from "../../faults/check/summary.ts";
import { readRun } from "../../faults/kept-run.ts";
import { projectRoot } from "../support/source-files.ts";

const program = join(projectRoot, "faults", "start.mjs");

function run(args: readonly string[]): Promise<{ readonly code: number | null; output: string }> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill());
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return new Promise((resolve) => {
    child.once("exit", (code) => resolve({ code, output }));
  });
}

test("a few seconds of real faults leave nothing stale behind a fence", async () => {
  const out = mkdtempSync(join(tmpdir(), "holdfast-evidence-"));
  onTestFinished(() => rmSync(out, { recursive: true, force: true }));
  const report = ["--out", out, "--name", "smoke", "--keep", join(out, "kept")];
  const args = ["--seconds", "8", "--clients", "3", ...report];
  const { code, output } = await run(args);
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toMatch(/^seed \d+:/);
  expect(readdirSync(out).sort()).toEqual(["kept", "smoke.json", "smoke.md", "smoke.svg"]);
  const { summary } = JSON.parse(readFileSync(join(out, "smoke.json"), "utf8"));
  expect(summary.faults).toBeGreaterThan(2);
  expect(summary.acquisitionsAfterHealing).toBeGreaterThan(0);
  expect(findingsOf(readRun(join(out, "kept")).history).summary).toEqual(summary);
});
