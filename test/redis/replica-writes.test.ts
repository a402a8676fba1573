import { expect, test } from "vitest";
import { encode } from "../../src/stores/redis/commands/encode.ts";
import { clusterMode, fencedMode, plainMode } from "../../src/stores/redis/commands/modes.ts";
import type { Operation } from "../../src/stores/redis/commands/operation.ts";
import {
  confirmsWrite,
  needsReplicas,
  withoutConfirmations,
} from "../../src/stores/redis/commands/replica-writes.ts";

const deployment = { admission: "off", wireFormat: "1:crc16:1024", ttlMaxMs: 30_000 } as const;
const common = { owner: "o", ttlMs: 1_000, fence: 1 };
const acquire: Operation = { kind: "acquire", keys: ["a"], ...common, place: undefined };
const extension: Operation = { kind: "touch", keys: ["a"], ...common };
const proof: Operation = { ...extension, ttlMs: 0 };
const release: Operation = { kind: "release", keys: ["a"], owner: "o", fence: 1, left: "" };
const leaving: Operation = { ...release, keys: ["a", "b"], left: "-w" };

test.each([
  ["fenced", fencedMode(deployment)],
  ["plain", plainMode],
  ["cluster", clusterMode],
])("a %s list waits for replicas if it may grant or extend", (_name, mode) => {
  const needs = (...operations: Operation[]): boolean =>
    needsReplicas(encode(mode, operations, false));
  expect([acquire, extension].map((each) => needs(each))).toEqual([true, true]);
  expect([proof, release, leaving].map((each) => needs(each))).toEqual([false, false, false]);
  expect([needs(proof, proof), needs(release, release)]).toEqual([false, false]);
  expect([needs(release, acquire), needs(proof, extension)]).toEqual([true, true]);
});

test("every confirmation in a reply is replaced, and nothing else", () => {
  const reply = "S 1790000000 5 -\nG\nG 17\nH 5 - G\nK\nN OTHER\nR 1 1";
  expect(confirmsWrite(reply)).toBe(true);
  const expected = ["X NO", "X NO", "H 5 - G", "X NO", "N OTHER", "R 1 1"];
  expect(withoutConfirmations(reply, "X NO")).toBe(["S 1790000000 5 -", ...expected].join("\n"));
  expect(confirmsWrite("S 1790000000 5 -\nH 5 - K\nR 1 1")).toBe(false);
});
