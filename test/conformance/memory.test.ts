import { describe } from "vitest";
import { createLocks } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { type ConformanceHarness, manualRuntime } from "../../src/testing/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { inOrder, sideBySide } from "./run-suite.ts";

const maxTtlMs = 30_000;

describe("the memory store on a manual clock", () => {
  watchLeaks();

  inOrder((): ConformanceHarness => {
    const store = memory();
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

describe("in real time", () => {
  sideBySide({
    "the memory store": () => {
      const store = memory();
      return {
        open: async (defaults) => createLocks(store, defaults),
        capabilities: store.capabilities,
        maxTtlMs,
        namespace: "real",
      };
    },
  });
});
