import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { latestCommit } from "./database-file.ts";

/** In the lock file of LMDB: its mark, the layout, and the number of the last commit. */
const magicBytes = [0xde, 0xc0, 0xef, 0xbe];
const commitPlace = 8;

/**
 * LMDB keeps the number of the last commit in its lock file, and begins a transaction there. The
 * LMDB inside the package `lmdb` has a fault (ITS#9496, mended elsewhere): a process that opens the
 * database writes the number it has read a moment ago, without a lock. If another has committed in
 * between, the next transaction begins at the commit before that, and undoes it. A lock that was
 * granted would be granted again.
 *
 * The database file itself always tells the truth. So each transaction, once it holds the lock of
 * LMDB and nobody else can commit, is compared with it.
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
   * Whether a transaction of this number builds on the last commit. If not, the number in the lock
   * file has been put right, and the transaction must end, empty, and begin again.
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
   * Whether the number is in the lock file where this guard takes it to be. Once in a while it is
   * not there because another process opens the database just now.
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
