import { describe, expect, test } from "vitest";
import { nextClockFence } from "../../src/core/time/clock-fence.ts";
import { createLocks } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { manualRuntime } from "../../src/testing/index.ts";

describe("a fence of a store on one machine", () => {
  test("is the wall clock in microseconds, as a fence of Redis", () => {
    expect(nextClockFence(0n, 1_800_000_000_000.9)).toBe(1_800_000_000_000_000n);
  });

  test("grows if the clock stands still or is set back", () => {
    expect(nextClockFence(5_000n, 5)).toBe(5_001n);
    expect(nextClockFence(5_000n, 1)).toBe(5_001n);
  });
});

test("fences of a memory store follow the clock, and survive a step back", async () => {
  const { runtime, clock } = manualRuntime();
  const locks = createLocks(memory(), { runtime });
  const fence = () => locks.using("r", (lease) => lease.fence);
  const first = await fence();
  expect(first).toBe(BigInt(clock.wallMs()) * 1_000n);
  expect(await fence()).toBe(first + 1n);
  clock.stepWall(60_000);
  const later = await fence();
  expect(later).toBe(first + 60_000_000n);
  clock.stepWall(-3_600_000);
  expect(await fence()).toBe(later + 1n);
  await locks.close();
});
