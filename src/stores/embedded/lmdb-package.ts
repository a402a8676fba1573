import { createRequire } from "node:module";
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
 * Loads the optional peer `lmdb` at the first use of a directory. Uses `require`, which is
 * synchronous: no other opening of the same directory can begin in between.
 */
export function loadLmdb(): LmdbPackage {
  try {
    return createRequire(import.meta.url)("lmdb") as LmdbPackage;
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND";
    throw new UnsupportedError(
      missing
        ? "the embedded store needs the package lmdb, which is not installed: npm install lmdb"
        : "the embedded store needs the package lmdb, which could not be loaded " +
            `(${cause instanceof Error ? cause.message : String(cause)}): npm install lmdb`,
      { cause },
    );
  }
}
