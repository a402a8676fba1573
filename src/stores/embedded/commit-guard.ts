import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { latestCommit } from "./database-file.ts";

/**
 * Magic bytes at the start of LMDB's lock file, and the position of the number of the last commit.
 */
const magicBytes = [0xde, 0xc0, 0xef, 0xbe];
const commitPlace = 8;

/**
 * Detects that LMDB is about to undo a commit.
 *
 * Problem: LMDB keeps the number of the last commit in its lock file, and starts each transaction
 * from that number. The LMDB in the package `lmdb` has a fault (ITS#9496, fixed in other copies of
 * LMDB): a process that opens the database writes a number it has read before, without a lock. If
 * another process has committed in between, the next transaction starts from the older commit and
 * undoes the newer one. A lock that was granted would then be granted again.
 *
 * Idea: the database file itself always contains the right number. Each transaction compares its
 * own number with that one while it holds the write lock of LMDB, so that no other process can
 * commit.
 */
export class CommitGuard {
  readonly #database: number;
  /**
   * Descriptor of the lock file. It stays open while LMDB has the file open: closing any descriptor
   * of a file drops all locks that the process has on that file.
   */
  readonly #lockFile: number;

  constructor(path: string) {
    this.#database = openSync(path, "r");
    this.#lockFile = openSync(`${path}-lock`, "r+");
  }

  /**
   * True if a transaction with this number builds on the last commit. Otherwise corrects the number
   * in the lock file: the caller must end the transaction without changes and start it again.
   */
  isCurrent(transaction: number): boolean {
    const last = latestCommit(this.#database);
    if (BigInt(transaction) === last + 1n) return true;
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(last);
    writeSync(this.#lockFile, bytes, 0, bytes.length, commitPlace);
    return false;
  }

  /**
   * True if the lock file has the number of the last commit at the expected position. False for a
   * moment while another process opens the database.
   */
  knowsLayout(transaction: number): boolean {
    const bytes = Buffer.alloc(commitPlace + 8);
    readSync(this.#lockFile, bytes, 0, bytes.length, 0);
    const marked = magicBytes.every((byte, index) => bytes[index] === byte);
    return marked && bytes.readBigUInt64LE(commitPlace) === BigInt(transaction) - 1n;
  }

  close(): void {
    closeSync(this.#database);
    closeSync(this.#lockFile);
  }
}
