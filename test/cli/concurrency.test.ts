import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { builtCli } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

test("fifty execs of one resource run one at a time", { timeout: 120_000 }, async () => {
  const folder = cli.folder();
  const count = 50;
  writeFileSync(join(folder, "counter"), "0\n");
  // Reads, pauses and writes. Two runs at a time would lose an update, and find each other's
  // folder.
  const script = `mkdir busy 2>/dev/null || echo overlap >> overlaps
    n=$(cat counter); sleep 0.01; echo $((n + 1)) > counter
    rmdir busy; echo "$HOLDFAST_FENCE" >> fences`;
  const args = ["exec", "one", "--store", "embedded:./locks", "--ttl", "20s", "--wait", "100s"];
  const all = Array.from({ length: count }, () =>
    cli.run([...args, "--", "sh", "-c", script], { cwd: folder }),
  );
  const ended = await Promise.all(all);
  expect(ended.filter(({ code }) => code !== 0)).toEqual([]);
  expect(readFileSync(join(folder, "counter"), "utf8")).toBe(`${count}\n`);
  expect(existsSync(join(folder, "overlaps"))).toBe(false);
  const fences = readFileSync(join(folder, "fences"), "utf8").trim().split("\n").map(Number);
  expect(fences).toEqual(fences.toSorted((a, b) => a - b));
  expect(new Set(fences).size).toBe(count);
});

test("concurrent checks of fences never accept a smaller one after a greater one", async () => {
  const folder = cli.folder();
  const file = join(folder, "fence");
  const fences = Array.from({ length: 12 }, (_, index) => ((index * 7) % 12) + 1);
  const checked = await Promise.all(
    fences.map(async (fence) => {
      const { code, stderr } = await cli.run([
        "fence",
        "check",
        "--create",
        "--file",
        file,
        String(fence),
      ]);
      return { fence, code, stderr };
    }),
  );
  expect(checked.filter(({ code }) => code !== 0 && code !== 79)).toEqual([]);
  expect(checked.find(({ fence }) => fence === 12)?.code).toBe(0);
  expect(readFileSync(file, "utf8")).toMatch(/^\d+\n$/);
  for (const fence of [1, 11]) {
    expect((await cli.run(["fence", "check", "--file", file, String(fence)])).code).toBe(79);
  }
  expect((await cli.run(["fence", "check", "--file", file, "12"])).code).toBe(0);
});
