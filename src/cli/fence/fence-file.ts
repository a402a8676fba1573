import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { renameSync, unlinkSync, writeSync } from "node:fs";
import { Failure } from "../failure.ts";

/**
 * Greatest fence seen, kept in files.
 *
 * The folder `FILE.fences` decides. It has one empty file per fence. A check first creates the file
 * of its own fence and then looks for a greater one. So no check passes after one with a greater
 * fence has passed, even if they run at the same time. A crash in between leaves only the file of a
 * fence that was presented. No lock is used, so none can be left behind. `FILE` itself contains the
 * number for people.
 */

/** Number of fence files kept. Lower fences decide nothing; some stay for concurrent checks. */
const keptCount = 32;
/** Digits of 2^63, so that the names sort like the numbers. */
const digits = 19;

export type Verdict =
  | { readonly accepted: true; readonly fence: bigint }
  | { readonly accepted: false; readonly fence: bigint; readonly seen: bigint };

/** Accepts a fence that is not smaller than the greatest seen, and stores it on disk. */
export function checkFenceFile(path: string, fence: bigint): Verdict {
  try {
    return check(path, `${path}.fences`, fence);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("unavailable", `cannot keep the fence: ${(error as Error).message}`, error);
  }
}

function check(path: string, folder: string, fence: bigint): Verdict {
  mkdirSync(folder, { recursive: true });
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
  for (const fence of old) {
    try {
      unlinkSync(`${folder}/${nameOf(fence)}`);
    } catch {
      // A concurrent check has already removed it.
    }
  }
}

function nameOf(fence: bigint): string {
  return String(fence).padStart(digits, "0");
}
