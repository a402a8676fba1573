import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { partsOf } from "../../src/core/manager-parts.ts";
import type { OpenStore } from "../../src/core/store.ts";
import { createLocks, StoreError } from "../../src/index.ts";
import { raiseMark, readMarks } from "../../src/stores/embedded/marks.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { machineWith, newDirectory, Port } from "./store-port.ts";

watchLeaks();

function open(directory: string): OpenStore {
  const locks = createLocks(embedded(directory));
  onTestFinished(() => locks.close());
  return partsOf(locks).store;
}

test("marks of a directory outlive its processes, and are on the disk", async () => {
  const directory = newDirectory();
  const name = 'nightly "report" ✓';
  expect(await open(directory).raiseMark?.(name, { value: 7, fence: 5n }, 0)).toEqual({
    kind: "raised",
  });
  expect(JSON.parse(readFileSync(join(directory, "marks"), "utf8"))).toEqual([[name, 7, "5"]]);
  const later = open(directory);
  expect(await later.mark?.(name)).toEqual({ value: 7, fence: 5n });
  expect(await later.raiseMark?.(name, { value: 7, fence: 6n }, 0)).toEqual({ kind: "refused" });
});

test("marks of a directory outlive a reboot, and fences after it are great enough", async () => {
  const directory = newDirectory();
  const before = new Port(directory, machineWith({ bootId: "1".repeat(32) }));
  const first = await before.take("job");
  await before.store.raiseMark("job", { value: 1, fence: first.fence }, 0);
  await before.store.close();
  const after = new Port(directory, machineWith({ bootId: "2".repeat(32) }));
  const { fence } = await after.take("job");
  expect(await after.store.raiseMark("job", { value: 1, fence }, 0)).toEqual({ kind: "refused" });
  expect(await after.store.raiseMark("job", { value: 2, fence }, 0)).toEqual({ kind: "raised" });
  await after.store.close();
});

test("a file of marks that is damaged is an error that names it", async () => {
  const directory = newDirectory();
  const store = open(directory);
  await store.raiseMark?.("a", { value: 1, fence: 1n }, 0);
  writeFileSync(join(directory, "marks"), "[[1");
  await expect(store.mark?.("a")).rejects.toThrow(StoreError);
  await expect(store.raiseMark?.("a", { value: 2, fence: 2n }, 0)).rejects.toThrow(
    /marks is damaged/,
  );
});

test("a directory refuses a mark of a new name when it has too many, and raises the others", async () => {
  const directory = newDirectory();
  // Creates the directory.
  await open(directory).mark?.("a");
  const rows = Array.from({ length: 10_000 }, (_, index) => [`name ${index}`, 1, "1"]);
  writeFileSync(join(directory, "marks"), JSON.stringify(rows));
  expect(readMarks(directory).size).toBe(10_000);
  expect(() => raiseMark(directory, "new", { value: 1, fence: 1n })).toThrow("too many names");
  expect(raiseMark(directory, "name 9999", { value: 2, fence: 1n })).toBe(true);
  expect(readMarks(directory).get("name 9999")).toEqual({ value: 2, fence: 1n });
});
