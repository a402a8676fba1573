import { expect, test } from "vitest";
import { faultKinds } from "../../faults/kinds.ts";
import { readOptions, UsageError } from "../../faults/options.ts";

test("by default five minutes of Holdfast run on five nodes", () => {
  const options = readOptions([]);
  expect(options).toMatchObject({ lock: "holdfast", seconds: 300, nodes: 5, connections: "plain" });
  expect(options.out).toBe("docs/evidence");
});

test("minutes or seconds, a seed and a peer can be given", () => {
  expect(readOptions(["--minutes", "2", "--seed", "7"])).toMatchObject({ seconds: 120, seed: 7 });
  const peer = readOptions(["--lock", "redlock5", "--seconds", "30", "--out", "none"]);
  expect(peer).toMatchObject({ seconds: 30, connections: "tuned", out: undefined });
});

test("kinds of faults can be given, all by default, and clocks without offsets", () => {
  expect(readOptions([])).toMatchObject({ kinds: faultKinds, offsets: "drawn", workers: 2 });
  const some = readOptions(["--kinds", "busy,misconf", "--offsets", "none", "--nodes", "1"]);
  expect(some).toMatchObject({ kinds: ["busy", "misconf"], offsets: "none", nodes: 1 });
});

test.each([
  ["an unknown option", ["--minute", "5"]],
  ["a missing value", ["--minutes"]],
  ["an unknown lock", ["--lock", "other"]],
  ["a number out of range", ["--nodes", "0"]],
  ["a quorum of one for a peer", ["--nodes", "1", "--lock", "redlock5"]],
  ["an unknown kind of fault", ["--kinds", "busy,earthquake"]],
  ["clocks that it does not know", ["--offsets", "some"]],
  ["no number", ["--seed", "x"]],
])("%s is refused with the usage", (_what, args) => {
  expect(() => readOptions(args)).toThrow(UsageError);
});
