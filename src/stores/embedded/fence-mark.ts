import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "../../core/errors.ts";

/**
 * Number of fences that are reserved at a time: those of a minute, because fences count µs.
 *
 * The database is not synced to disk, because locks do not matter after a reboot. But no fence may
 * be granted twice. So a separate file keeps a mark: a number that no granted fence exceeds. Only
 * an update of this file waits for the disk.
 */
export const fencesPerMark = 60_000_000n;

const name = "fences";

/** Returns the greatest fence that may have been granted; 0 for a new directory. */
export function readMark(directory: string): bigint {
  const path = join(directory, name);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return 0n;
    throw cause;
  }
  if (/^\d{1,30}\n$/.test(text)) return BigInt(text);
  throw new StoreError(
    `${path} is damaged: it must hold one number, greater than every fence given out so far. ` +
      "Write such a number into it before you go on",
  );
}

/**
 * Stores `mark` on disk. Must be called before a fence up to `mark` is granted, and inside a write
 * transaction, so that there is one writer at a time.
 */
export function writeMark(directory: string, mark: bigint): void {
  writeSynced(directory, name, `${mark}\n`);
}

/** Replaces a file of the directory in one step, and waits until the disk has it. */
export function writeSynced(directory: string, file: string, text: string): void {
  const path = join(directory, file);
  const next = `${path}.next`;
  const opened = openSync(next, "w", 0o664);
  try {
    writeFileSync(opened, text);
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
  renameSync(next, path);
  syncDirectory(directory);
}

/**
 * Writes a rename in `directory` to disk. Windows has no call for this, and its file system keeps
 * renames in a journal.
 */
function syncDirectory(directory: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(directory, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
