import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { UnsupportedError } from "../../core/errors.ts";

/** Members of a database of the package `lmdb` that are used here. */
export interface LmdbDatabase {
  get(key: string): string | undefined;
  putSync(key: string, value: string): boolean;
  removeSync(key: string): boolean;
  getRange(options: {
    readonly start: string;
    readonly end: string;
    readonly limit: number;
  }): Iterable<{ readonly key: string; readonly value: string }>;
  /** The callback must not return a promise: the transaction would stay open until it settles. */
  transactionSync(callback: () => void): void;
  /** Returns the number of the current transaction. */
  getWriteTxnId(): number;
  close(): Promise<void>;
}

export interface LmdbPackage {
  open(options: {
    readonly path: string;
    readonly encoding: "string";
    readonly noSync: boolean;
    readonly mapSize: number;
  }): LmdbDatabase;
}

/**
 * Loads the optional package `lmdb` at the first use of a directory. Uses `require`, which is
 * synchronous: no second call can start to open the same directory meanwhile.
 */
export function loadLmdb(): LmdbPackage {
  try {
    return createRequire(import.meta.url)("lmdb") as LmdbPackage;
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND";
    const because = cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause);
    const what = isMissing ? "which is not installed" : `which could not be loaded (${because})`;
    const remedy = installationOf(fileURLToPath(import.meta.url));
    throw new UnsupportedError(`the embedded store needs the package lmdb, ${what}: ${remedy}`, {
      cause,
    });
  }
}

/**
 * Returns the command that installs lmdb so that the file at `path`, a part of this package, can
 * load it.
 */
export function installationOf(path: string): string {
  const [, above, cache] = /^(.*?([\\/]_npx[\\/])?[^\\/]*)[\\/]node_modules[\\/]/.exec(path) ?? [];
  if (cache !== undefined) return "npx --package holdfast --package lmdb -- holdfast …";
  // Global packages are in a folder without a package.json.
  const isGlobal = above !== undefined && !existsSync(join(above, "package.json"));
  return isGlobal ? "npm install --global lmdb" : "npm install lmdb";
}
