import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "../../core/errors.ts";

/**
 * How many fences are reserved at a time. The database is not synced to the disk, because nothing
 * in it matters after a reboot, except that no fence may come twice. So a mark above every fence in
 * use is kept in a file of its own, and only raising it waits for the disk.
 */
export const fencesPerMark = 1_000n;

const name = "fences";

/** The greatest fence that may ever have been given out; 0 for a new directory. */
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
 * Makes `mark` survive a power failure before anybody gets a fence up to it. Only called inside a
 * write transaction, so there is one writer at a time.
 */
export function writeMark(directory: string, mark: bigint): void {
  const path = join(directory, name);
  const next = `${path}.next`;
  const file = openSync(next, "w", 0o664);
  try {
    writeSync(file, `${mark}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(next, path);
  syncDirectory(directory);
}

/** Without it the new name may be lost. Windows has no such call, and journals names itself. */
function syncDirectory(directory: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(directory, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
