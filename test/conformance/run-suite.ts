import { beforeAll, describe, test } from "vitest";
import { type ConformanceHarness, storeConformance } from "../../src/testing/index.ts";

type MakeHarness = () => ConformanceHarness;

/** Each case as a test of its own, one after the other. */
export function inOrder(make: MakeHarness): void {
  test.each(storeConformance)("$name", ({ run }) => run(make()));
}

/**
 * All cases on all of these at once, and then a test for each that tells how it went: the cases
 * spend their time waiting, and names of their own keep them apart.
 */
export function sideBySide(group: string, harnesses: Readonly<Record<string, MakeHarness>>): void {
  describe(group, () => {
    const outcomes = new Map<string, Promise<{ error: unknown } | undefined>>();

    beforeAll(() => {
      for (const [where, make] of Object.entries(harnesses)) {
        const harness = make();
        for (const { name, run } of storeConformance) {
          const outcome = run(harness).then(
            () => undefined,
            (error: unknown) => ({ error }),
          );
          outcomes.set(`${where} ${name}`, outcome);
        }
      }
    });

    describe.each(Object.keys(harnesses))("%s", (where) => {
      test.each(storeConformance)("$name", async ({ name }) => {
        const failure = await outcomes.get(`${where} ${name}`);
        if (failure !== undefined) throw failure.error;
      });
    });
  });
}
