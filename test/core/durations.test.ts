import { describe, expect, test } from "vitest";
import { durationMs } from "../../src/core/time/durations.ts";

const bounds = { minMs: 10, maxMs: 86_400_000 };

describe("a duration", () => {
  test.each([
    [10, 10],
    [86_400_000, 86_400_000],
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["24h", 86_400_000],
    ["0.5s", 500],
    ["1.5m", 90_000],
    // Products such as 0.1 × 3 600 000 are not whole numbers in binary.
    ["0.1h", 360_000],
    ["0.07s", 70],
    ["1.001s", 1_001],
    ["007s", 7_000],
  ])("%j is %d ms", (value, ms) => {
    expect(durationMs("ttl", value, bounds)).toBe(ms);
  });

  test("has the same value each time, also after many other texts", () => {
    for (let round = 0; round < 2; round += 1) {
      for (let ms = 10; ms < 300; ms += 1) expect(durationMs("ttl", `${ms}ms`, bounds)).toBe(ms);
      expect(durationMs("ttl", "30s", bounds)).toBe(30_000);
    }
    // The bounds are those of the call, not of an earlier one.
    expect(() => durationMs("ttl", "30s", { ...bounds, maxMs: 29_999 })).toThrow("29999 ms");
  });

  const bad: readonly unknown[] = [
    9,
    0,
    -1,
    -0,
    10.5,
    86_400_001,
    Number.NaN,
    Infinity,
    Number.MAX_VALUE,
    "9ms",
    "25h",
    "10.5ms",
    "0.0001s",
    "10",
    "ms",
    "",
    " 10s",
    "10s ",
    "10 s",
    "10S",
    "10sec",
    "-10s",
    "+10s",
    "1e3ms",
    ".5s",
    "5.s",
    "10s10s",
    "10s\n",
    "٣s",
    "forever",
    10n,
    true,
    null,
    undefined,
    {},
    [10],
    new Date(10),
  ];

  test.each(bad.map((value) => ({ value })))(
    "$value is refused with an error that names it",
    ({ value }) => {
      expect(() => durationMs("some.option", value, bounds)).toThrow(
        expect.objectContaining({
          code: "INVALID_OPTION",
          option: "some.option",
          message: expect.stringMatching(/^Expected `some\.option` to be a duration .*, got /),
        }),
      );
    },
  );
});
