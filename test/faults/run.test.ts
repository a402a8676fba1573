import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findingsOf } from "../../faults/check/summary.ts";
import { faultKinds } from "../../faults/kinds.ts";
import { readRun } from "../../faults/kept-run.ts";
import { drawPlan } from "../../faults/plan.ts";
import { runProgram } from "../support/run-program.ts";
import { projectRoot } from "../support/source-files.ts";

const program = join(projectRoot, "faults", "start.mjs");

const ofConnections = ["lose-replies", "kill-connections", "kill-subscribers", "delay"] as const;

test.each([
  ["any kind on five nodes", { seconds: 8, nodes: 5, kinds: faultKinds }],
  [
    "connections and refusals on one node",
    { seconds: 6, nodes: 1, kinds: [...ofConnections, "busy", "misconf"] as const },
  ],
])("a few seconds of real faults of %s break no promise", async (_what, terms) => {
  const { seconds, nodes, kinds } = terms;
  const seed = Math.floor(Math.random() * 1e9);
  const out = mkdtempSync(join(tmpdir(), "holdfast-evidence-"));
  onTestFinished(() => rmSync(out, { recursive: true, force: true }));
  const report = ["--out", out, "--name", "smoke", "--keep", join(out, "kept")];
  const sizes = ["--seconds", String(seconds), "--nodes", String(nodes), "--clients", "3"];
  const drawn = ["--seed", String(seed), "--kinds", kinds.join()];
  const { code, output } = await runProgram(program, [...sizes, ...drawn, ...report]);
  // The output names each broken promise, and the seed.
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain(`seed ${seed}:`);
  expect(readdirSync(out).sort()).toEqual(["kept", "smoke.json", "smoke.md", "smoke.svg"]);
  const { summary, options } = JSON.parse(readFileSync(join(out, "smoke.json"), "utf8"));
  expect(summary).toMatchObject({ falseLosses: {}, rejections: 0, overdue: 0 });
  const { clockSteps } = options;
  const durationMs = seconds * 1_000;
  const plan = drawPlan({ seed, durationMs, nodes, clients: 3, kinds, clockSteps });
  expect(summary.faults).toBe(plan.length);
  expect(findingsOf(readRun(join(out, "kept")).history).summary).toEqual(summary);
});
