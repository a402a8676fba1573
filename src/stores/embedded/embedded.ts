import { resolve } from "node:path";
import { durationMs, type Duration } from "../../core/time/durations.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { knownOptions, ttlMinMs } from "../../core/options.ts";
import type { Store } from "../../core/store.ts";
import { allowanceMs, EmbeddedStore } from "./embedded-store.ts";
import { thisMachine } from "./machine.ts";

export interface EmbeddedOptions {
  /** Longest TTL that may be requested. @default "30s", as for Redis */
  readonly maxTtl?: Duration;
}

/**
 * Returns a store for locks between the processes of one machine, kept in a directory, without a
 * server. The directory is created if it is missing, and must be on a local disk. The store needs
 * the package `lmdb`: without it, the first call fails with an UnsupportedError.
 */
export function embedded(directory: string, options: EmbeddedOptions = {}): Store {
  if (typeof directory !== "string" || directory === "" || directory.includes("\0")) {
    throw new InvalidOptionError("directory", "the path of a directory", directory);
  }
  knownOptions("options", options, ["maxTtl"]);
  const bounds = { minMs: ttlMinMs, maxMs: 86_400_000 };
  const maxTtlMs = durationMs("maxTtl", options.maxTtl ?? 30_000, bounds);
  // The path is resolved now, so that a later change of the working directory has no effect on it.
  const path = resolve(directory);
  return {
    name: "embedded",
    capabilities: { fencing: true, multiResource: true, marks: true },
    maxTtlMs,
    validityMs: (ttlMs) => ttlMs - allowanceMs,
    open: (context) => new EmbeddedStore(path, thisMachine, context),
  };
}
