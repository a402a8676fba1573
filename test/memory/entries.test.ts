import { expect, test } from "vitest";
import { Entries } from "../../src/stores/memory/entries.ts";

function entry(expiresMs: number) {
  return { owner: "owner", fence: 1n, expiresMs };
}

test("expired entries do not accumulate, even if they are never requested again", () => {
  const entries = new Entries();
  for (let nowMs = 0; nowMs < 10_000; nowMs += 1) {
    entries.set(`name ${nowMs}`, entry(nowMs + 10), nowMs);
    // Ten are alive at any time; the sweep removes entries twice as fast as new ones come.
    expect(entries.size).toBeLessThanOrEqual(40);
  }
});

test("entries that have not expired are kept, in any number of sweeps", () => {
  const entries = new Entries();
  for (let index = 0; index < 500; index += 1) entries.set(`kept ${index}`, entry(2_000), 0);
  for (let nowMs = 0; nowMs < 1_999; nowMs += 1) {
    entries.set(`passing ${nowMs}`, entry(nowMs + 1), nowMs);
  }
  for (let index = 0; index < 500; index += 1) {
    expect(entries.get(`kept ${index}`, 1_999)).toEqual(entry(2_000));
    expect(entries.get(`kept ${index}`, 2_000)).toBeUndefined();
  }
});

test("an extended entry is not removed at its first end", () => {
  const entries = new Entries();
  entries.set("extended", entry(10), 0);
  entries.set("extended", entry(1_000), 5);
  for (let nowMs = 10; nowMs < 500; nowMs += 1) entries.set(`other ${nowMs}`, entry(nowMs), nowMs);
  expect(entries.get("extended", 500)).toEqual(entry(1_000));
});
