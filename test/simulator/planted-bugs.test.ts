import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Hunted } from "../../tools/simulator/hunt-bug.mjs";
import { mutants } from "../../tools/simulator/mutant-list.mjs";
import { sampleOf, seedsMax, type KnownSeeds } from "../../tools/simulator/sample.mjs";
import { projectRoot, readProject } from "../support/source-files.ts";

const known = JSON.parse(
  readFileSync(new URL("known-seeds.json", import.meta.url), "utf8"),
) as KnownSeeds;
/** Processor time of an idle machine. */
const budgetSeconds = 60;

/** Returns the commit, or a hash of the sources where there is no repository. */
function commit(): string {
  const git = spawnSync("git", ["rev-parse", "HEAD"], { cwd: projectRoot, encoding: "utf8" });
  if (git.status === 0) return git.stdout.trim();
  const hash = createHash("sha1");
  for (const { path, text } of readProject()) hash.update(path).update(text);
  return hash.digest("hex");
}

test("a commit always has the same sample of planted bugs, and others have another", () => {
  const samples = ["a", "b", "c"].map((each) => sampleOf(each, known, budgetSeconds));
  expect(sampleOf("a", known, budgetSeconds)).toEqual(samples[0]);
  expect(new Set(samples.map((sample) => sample.join())).size).toBe(3);
  for (const sample of samples) expect(sample.length).toBeGreaterThan(8);
});

test("every bug that is found soon is in the sample of some commit, and no rare one is", () => {
  const drawn = new Set(
    Array.from({ length: 200 }, (_, each) => sampleOf(String(each), known, budgetSeconds)).flat(),
  );
  const soon = Object.keys(known).filter((name) => (known[name] ?? Infinity) <= seedsMax);
  expect([...drawn].toSorted()).toEqual(soon.toSorted());
});

test("the kept seeds are those of bugs in the list", () => {
  const names = new Set(mutants.map(({ name }) => name));
  expect(Object.keys(known).filter((name) => !names.has(name))).toEqual([]);
});

test("the simulator finds every planted bug in the sample of this commit", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bugs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const json = join(folder, "found.json");
  const program = join(projectRoot, "tools", "simulator", "mutants.mjs");
  const jobs = String(Math.max(1, Math.floor(availableParallelism() / 2)));
  const of = commit();
  const args = [program, "--sample", of, "--json", json, "--jobs", jobs];
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, { cwd: projectRoot }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
  const found = JSON.parse(readFileSync(json, "utf8")) as Hunted[];
  process.stdout.write(`planted bugs of commit ${of.slice(0, 10)}:\n${output}`);
  expect(found.map(({ name }) => name).toSorted()).toEqual(
    sampleOf(of, known, budgetSeconds).toSorted(),
  );
  expect(found.filter(({ seed }) => seed === undefined)).toEqual([]);
}, 1_800_000);
