import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { createLocks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { sideBySide } from "../conformance/run-suite.ts";

const maxTtlMs = 30_000;
/** Long enough for a machine that is kept busy by the other test files. */
const shortTtlMs = 1_500;
const folder = mkdtempSync(join(tmpdir(), "holdfast-embedded-"));
let directories = 0;

function newDirectory(): string {
  directories += 1;
  return join(folder, String(directories));
}

afterAll(() => rmSync(folder, { recursive: true, force: true }));

sideBySide({
  "the embedded store, one for all managers": () => {
    const store = embedded(newDirectory());
    return {
      open: async (defaults) => createLocks(store, defaults),
      capabilities: store.capabilities,
      maxTtlMs,
      namespace: "one",
      shortTtlMs,
    };
  },
  "the embedded store, one for each manager": () => {
    const directory = newDirectory();
    return {
      open: async (defaults) => createLocks(embedded(directory), defaults),
      capabilities: { fencing: true, multiResource: true, marks: true },
      maxTtlMs,
      namespace: "each",
      shortTtlMs,
    };
  },
});
