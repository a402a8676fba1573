import { createRequire } from "node:module";
import { UnsupportedError } from "../../core/errors.ts";

/** Of a database of the package `lmdb`, the members used here. */
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
  /** The number of the transaction under way. */
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
 * The optional peer `lmdb`, loaded at the first use of a directory. By `require`, so that opening
 * is one step without a gap in which another opening of the same directory could begin.
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
