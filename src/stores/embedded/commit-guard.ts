import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { latestCommit } from "./database-file.ts";

/** Start of LMDB's lock file: its magic bytes, and the position of the last commit's number. */
const magicBytes = [0xde, 0xc0, 0xef, 0xbe];
const commitPlace = 8;

/**
 * Detects that LMDB is about to undo a commit.
 *
 * Problem: LMDB keeps the number of the last commit in its lock file, and begins each transaction
 * from it. The LMDB in the package `lmdb` has a fault (ITS#9496, fixed elsewhere): a process that
 * opens the database writes a number it has read before, without a lock. If another process has
 * committed in between, the next transaction begins from the commit before that, and undoes it. A
 * lock that was granted would be granted again.
 *
 * Idea: the database file itself always has the right number. Each transaction is compared with it
 * while it holds the write lock of LMDB, so that no other process can commit.
 */
export class CommitGuard {
  readonly #database: number;
  /**
   * Never closed while LMDB has the file open: closing any descriptor of a file drops all locks
   * that the process has on it.
   */
  readonly #lockFile: number;

  constructor(path: string) {
    this.#database = openSync(path, "r");
    this.#lockFile = openSync(`${path}-lock`, "r+");
  }

  /**
   * True if a transaction with this number builds on the last commit. If not, corrects the number
   * in the lock file: the transaction must then end without changes, and begin again.
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
   * True if the lock file has the number at the expected position. False for a moment while another
   * process opens the database.
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
