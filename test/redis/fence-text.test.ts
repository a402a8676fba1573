import * as fc from "fast-check";
import { expect, test } from "vitest";
import { fenceText } from "../../src/stores/redis/commands/encode.ts";

test("a fence is written as a plain number, whatever was written before it", () => {
  const near = fc.integer({ min: -3, max: 3 }).map((by) => 1_794_838_876_000_000 + by);
  const some = fc.oneof(near, fc.maxSafeNat(), fc.nat({ max: 2_000_000 }));
  fc.assert(
    fc.property(fc.array(some), (fences) => {
      expect(fences.map((fence) => fenceText(fence))).toEqual(fences.map(String));
    }),
  );
});
