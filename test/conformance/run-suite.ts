import { beforeAll, describe, test } from "vitest";
import { type ConformanceHarness, storeConformance } from "../../src/testing/index.ts";

type MakeHarness = () => ConformanceHarness;

/** Runs each case as a test, one after the other. */
export function inOrder(make: MakeHarness): void {
  test.each(storeConformance)("$name", ({ run }) => run(make()));
}

/**
 * Limit for cases at a time. Most cases wait most of the time, but more would wait for the
 * processor.
 */
const atOnceMax = 40;

/**
 * Runs the cases of all harnesses, many at a time, each reported by a test. The cases use
 * different names, so they do not disturb each other. Call it once per file, or per describe
 * block.
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

/** Runs tasks in order, with a limit for how many run at a time. */
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
