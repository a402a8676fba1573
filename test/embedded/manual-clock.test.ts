import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { createLocks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { type ConformanceHarness, manualRuntime } from "../../src/testing/index.ts";
import { inOrder } from "../conformance/run-suite.ts";
import { watchLeaks } from "../support/leaks.ts";

const maxTtlMs = 30_000;
const folder = mkdtempSync(join(tmpdir(), "holdfast-embedded-"));
let directories = 0;

function newDirectory(): string {
  directories += 1;
  return join(folder, String(directories));
}

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the embedded store on a manual clock", () => {
  watchLeaks();

  inOrder((): ConformanceHarness => {
    const store = embedded(newDirectory());
    const { runtime, clock } = manualRuntime();
    return {
      open: async (defaults) => createLocks(store, { ...defaults, runtime }),
      advance: (ms) => clock.advance(ms),
      capabilities: store.capabilities,
      maxTtlMs,
      namespace: "manual",
    };
  });
});
