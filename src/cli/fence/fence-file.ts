import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { readdirSync, readFileSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../failure.ts";

/**
 * Greatest fence seen, kept in files.
 *
 * The folder `FILE.fences` decides. It has one empty file per fence. A check first creates the file
 * of its own fence and then looks for a file of a greater fence. So no check passes after a check
 * with a greater fence has passed, even if both run at the same time. A crash in between leaves
 * only the file of a fence that was presented. No lock is used, so a crash leaves no lock behind.
 * `FILE` itself contains the greatest fence for people to read.
 */

/**
 * Number of fence files that are kept. Only the greatest fence decides. The others stay for
 * concurrent checks.
 */
const keptCount = 32;
/** Number of digits of 2^63. With leading zeros, the file names sort like the numbers. */
const digits = 19;

export type Verdict =
  | { readonly accepted: true; readonly fence: bigint }
  | { readonly accepted: false; readonly fence: bigint; readonly seen: bigint };

/**
 * Accepts a fence that is not smaller than the greatest seen, and stores it on disk. Throws Failure
 * if no fence was ever stored at this path, unless `create` is true: at a wrong path, every fence
 * would be accepted.
 */
export function checkFenceFile(path: string, fence: bigint, create: boolean): Verdict {
  return kept(() => {
    const folder = folderOf(path);
    if (!existsSync(folder)) makeFolder(path, folder, create);
    return check(path, folder, fence);
  });
}

/**
 * Replaces stored fences above `limit` by `fence`. Returns the fences that were removed. Fences up
 * to the limit stay, so that all earlier holders stay refused.
 */
export function lowerFenceFile(path: string, fence: bigint, limit: bigint): readonly bigint[] {
  return kept(() => {
    const folder = folderOf(path);
    if (!existsSync(folder)) throw notKept(path);
    const removed = [...new Set([...seenIn(folder), shownIn(path)])].filter((one) => one > limit);
    if (removed.length === 0) return [];
    // `FILE` is replaced before the fence files are removed, because the number in it counts as
    // seen.
    leave(folder, fence);
    show(
      path,
      greatest(
        seenIn(folder).filter((one) => one <= limit),
        fence,
      ),
    );
    for (const one of removed) remove(folder, one);
    return removed;
  });
}

function kept<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("unavailable", `cannot keep the fence: ${(error as Error).message}`, error);
  }
}

function folderOf(path: string): string {
  return `${path}.fences`;
}

function notKept(path: string): Failure {
  const what = `no fence was ever kept in ${path}: check the path`;
  return new Failure("misuse", `${what}, or add --create for the first use`);
}

function makeFolder(path: string, folder: string, create: boolean): void {
  if (!existsSync(dirname(path))) {
    throw new Failure("misuse", `the folder ${dirname(path)} does not exist`);
  }
  if (!create && !existsSync(path)) throw notKept(path);
  // `recursive`, because another check may create the folder at the same time.
  mkdirSync(folder, { recursive: true });
}

function check(path: string, folder: string, fence: bigint): Verdict {
  const before = greatest(seenIn(folder), shownIn(path));
  if (before > fence) return { accepted: false, fence, seen: before };
  leave(folder, fence);
  const all = seenIn(folder);
  const seen = greatest(all, 0n);
  if (seen > fence) return { accepted: false, fence, seen };
  show(path, fence);
  forget(folder, all);
  return { accepted: true, fence };
}

/** Stores the fence durably on disk before the check passes. */
function leave(folder: string, fence: bigint): void {
  const file = openSync(`${folder}/${nameOf(fence)}`, "a", 0o644);
  closeSync(file);
  const directory = openSync(folder, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

function seenIn(folder: string): readonly bigint[] {
  return readdirSync(folder)
    .filter((name) => /^\d{19}$/.test(name))
    .map(BigInt);
}

function greatest(fences: readonly bigint[], least: bigint): bigint {
  return fences.reduce((found, fence) => (fence > found ? fence : found), least);
}

/** Returns the number in `FILE`; a number written there by hand counts as seen. */
function shownIn(path: string): bigint {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0n;
    throw error;
  }
  if (/^\d{1,19}$/.test(text)) return BigInt(text);
  throw new Failure("misuse", `${path} holds something else than a fence: use a file of its own`);
}

function show(path: string, fence: bigint): void {
  const aside = `${path}.${process.pid}.tmp`;
  const file = openSync(aside, "w", 0o644);
  try {
    writeSync(file, `${fence}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(aside, path);
}

function forget(folder: string, fences: readonly bigint[]): void {
  const old = fences.toSorted((a, b) => (a < b ? 1 : -1)).slice(keptCount);
  for (const fence of old) remove(folder, fence);
}

function remove(folder: string, fence: bigint): void {
  try {
    unlinkSync(`${folder}/${nameOf(fence)}`);
  } catch {
    // A concurrent check has already removed the file.
  }
}

function nameOf(fence: bigint): string {
  return String(fence).padStart(digits, "0");
}
