import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { shareRedis } from "../support/redis-harness.ts";
import { shareBuild, startChildHolder } from "./child-holder.ts";

const bench = shareRedis(3);
const build = shareBuild();
const key = "invoice:42";

function isIncreasing(fences: readonly bigint[]): boolean {
  return fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? 0n));
}

test.each([
  { nodes: 1, fencing: true },
  { nodes: 1, fencing: false },
  { nodes: 3, fencing: true },
  { nodes: 3, fencing: false },
])("100 tasks on $nodes nodes never overlap (fencing: $fencing)", async ({ nodes, fencing }) => {
  const defaults = { wait: "forever", retry: { minDelay: 1, maxDelay: 50 } } as const;
  // Two managers, so that tasks of different clients compete as well.
  const ours = await bench.locks(nodes, { fencing }, defaults);
  const theirs = await bench.locks(nodes, { fencing }, defaults);
  let inside = 0;
  let insideMost = 0;
  const fences: bigint[] = [];
  const tasks = Array.from({ length: 100 }, (_, index) =>
    (index % 2 === 0 ? ours : theirs).using(key, async (lease) => {
      inside += 1;
      insideMost = Math.max(insideMost, inside);
      if (fencing) fences.push(lease.fence);
      await setImmediate();
      await setImmediate();
      inside -= 1;
      return index;
    }),
  );
  const done = await Promise.all(tasks);
  expect(done).toEqual(Array.from({ length: 100 }, (_, index) => index));
  expect(insideMost).toBe(1);
  expect(fences).toHaveLength(fencing ? 100 : 0);
  expect(isIncreasing(fences)).toBe(true);
});

// Defect 10 of other libraries: a stale holder got the greater fence.
test.each([1, 3])("processes on %i nodes never overlap, and fences only grow", async (nodes) => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-inside-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "inside");
  const ports = bench.servers.slice(0, nodes).map(({ port }) => port);
  const children = await Promise.all([0, 1].map(() => startChildHolder(build, ports)));
  const times = 60;
  for (const child of children) child.order({ kind: "contend", resource: key, times, file });
  const answers = await Promise.all(children.map((child) => child.answer()));
  expect(answers).toEqual([{ overlaps: 0 }, { overlaps: 0 }]);
  const fences = readFileSync(`${file}.fences`, "utf8").trim().split("\n").map(BigInt);
  expect(fences).toHaveLength(2 * times);
  expect(isIncreasing(fences)).toBe(true);
});
