import { beforeAll, describe, test } from "vitest";
import { type ConformanceHarness, storeConformance } from "../../src/testing/index.ts";

type MakeHarness = () => ConformanceHarness;

/** Each case as a test of its own, one after the other. */
export function inOrder(make: MakeHarness): void {
  test.each(storeConformance)("$name", ({ run }) => run(make()));
}

/** Most cases wait most of the time; more at once would only wait for the processor instead. */
const atOnceMax = 40;

/**
 * The cases on all of these, many at once, each with a test that tells how it went. Names of their
 * own keep the cases apart. Call it once per file, or per describe block.
 */
export function sideBySide(harnesses: Readonly<Record<string, MakeHarness>>): void {
  const outcomes = new Map<string, Promise<{ error: unknown } | undefined>>();
  const pool = new Pool(atOnceMax);

  beforeAll(() => {
    for (const [where, make] of Object.entries(harnesses)) {
      const harness = make();
      for (const { name, run } of storeConformance) {
        const outcome = pool
          .run(() => run(harness))
          .then(
            () => undefined,
            (error: unknown) => ({ error }),
          );
        outcomes.set(`${where}: ${name}`, outcome);
      }
    }
  });

  describe.each(Object.keys(harnesses))("%s", (where) => {
    test.each(storeConformance)("$name", async ({ name }) => {
      const failure = await outcomes.get(`${where}: ${name}`);
      if (failure !== undefined) throw failure.error;
    });
  });
}

/** Runs what it is given in order, so many at a time. */
class Pool {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(size: number) {
    this.#free = size;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
