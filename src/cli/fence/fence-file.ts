import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { renameSync, unlinkSync, writeSync } from "node:fs";
import { Failure } from "../failure.ts";

/**
 * The greatest fence seen, in files. Truth is the folder `FILE.fences`, with one empty file per
 * fence: whoever wants to pass first leaves its own there, and then looks whether there is a
 * greater one. So no check can pass after a greater one has, whatever happens at the same time, and
 * a crash in between leaves nothing behind but a fence that was shown. There is no lock to be left
 * locked. `FILE` itself has the number for people.
 */

/** Lower ones are of no use; some are kept, for those who look while others come and go. */
const keptCount = 32;
/** As many digits as 2^63 has, so that names sort as numbers do. */
const digits = 19;

export type Verdict =
  | { readonly accepted: true; readonly fence: bigint }
  | { readonly accepted: false; readonly fence: bigint; readonly seen: bigint };

/** Accepts a fence that is not smaller than the greatest seen, and keeps it on the disk. */
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

/** On the disk before anybody is told that it passed. */
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

/** What the file for people says: a number that somebody wrote there counts as seen. */
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
      // Another check was faster.
    }
  }
}

function nameOf(fence: bigint): string {
  return String(fence).padStart(digits, "0");
}
