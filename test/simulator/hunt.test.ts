import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { HuntState, blockSize, emptyTotals, type Hunt } from "../../tools/simulator/hunt-state.mjs";
import { runProgram } from "../support/run-program.ts";
import { projectRoot } from "../support/source-files.ts";

// For a machine that is kept busy by others.
vi.setConfig({ testTimeout: 240_000 });

function stateFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-hunt-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "below", "hunts.json");
}

const read = (path: string): Hunt[] => JSON.parse(readFileSync(path, "utf8")) as Hunt[];
const oneBlock = { ...emptyTotals(), seeds: blockSize };

async function hunt(state: string, ...args: readonly string[]): Promise<string> {
  const program = join(projectRoot, "tools", "simulator", "hunt.mjs");
  const { code, output } = await runProgram(program, ["--dry-run", "--state", state, ...args]);
  if (code !== 0) throw new Error(output);
  return output;
}

test("a hunt runs in several threads, and the next one goes on where it ended", async () => {
  const state = stateFile();
  const first = await hunt(state, "--from", "1", "--seeds", "100", "--jobs", "2");
  expect(first).toContain("from seed 1: 100 seeds");
  expect(await hunt(state, "--seeds", "150", "--jobs", "1")).toContain("150 seeds");
  const [kept] = read(state);
  expect(kept).toMatchObject({ from: 1, nextBlock: 3, finished: [], found: [] });
  expect(kept?.totals.tenures).toBeGreaterThan(1_000);
  expect(await hunt(state, "--status")).toContain("150 seeds");
});

test("a block of seeds that was interrupted runs again, and no block counts twice", () => {
  const path = stateFile();
  const before = new HuntState(path, "sources", 1_000);
  const [first, second, third] = [before.take(), before.take(), before.take()];
  expect([first.seed, second.seed, third.seed]).toEqual([1_000, 1_050, 1_100]);
  before.finish(first.block, oneBlock, []);
  before.finish(third.block, oneBlock, []);
  const after = new HuntState(path, "sources", undefined);
  expect(after.hunt.totals.seeds).toBe(2 * blockSize);
  expect(after.take()).toEqual(second);
  expect(after.take()).toEqual({ block: 3, seed: 1_150 });
  after.finish(second.block, oneBlock, []);
  expect(read(path)[0]).toMatchObject({ nextBlock: 3, finished: [] });
});

test("other sources begin a hunt of their own, and so does a given first seed", () => {
  const path = stateFile();
  const one = new HuntState(path, "one", 1);
  one.finish(one.take().block, oneBlock, []);
  const other = new HuntState(path, "other", undefined);
  expect(other.hunt.totals.seeds).toBe(0);
  other.save();
  expect(read(path).map(({ sources }) => sources)).toEqual(["other", "one"]);
  expect(new HuntState(path, "one", undefined).hunt.totals.seeds).toBe(blockSize);
  expect(new HuntState(path, "one", 7).hunt).toMatchObject({ from: 7, nextBlock: 0 });
});
