import { readFileSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "../../core/errors.ts";
import { raiseIn, type Mark } from "../../core/mark.ts";
import { writeSynced } from "./fence-mark.ts";

/**
 * Marks of a directory: the ticks that schedules have begun. They are in a file beside the fences,
 * and not in the database, because they must outlive a reboot.
 */

const file = "marks";

/** Returns all marks, by name. Must be called inside a write transaction. */
export function readMarks(directory: string): Map<string, Mark> {
  const path = join(directory, file);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw cause;
  }
  try {
    const stored = JSON.parse(text) as readonly (readonly [string, number, string])[];
    return new Map(
      stored.map(([name, value, fence]) => [name, { value, fence: BigInt(fence) }] as const),
    );
  } catch (cause) {
    const remedy = "delete it if each schedule may run its last tick again";
    throw new StoreError(`${path} is damaged: ${remedy}`, { cause });
  }
}

/**
 * Raises a mark, and waits for the disk. Returns false if the mark is refused. Must be called
 * inside a write transaction, so that there is one writer at a time.
 */
export function raiseMark(directory: string, name: string, next: Mark): boolean {
  const marks = readMarks(directory);
  if (!raiseIn(marks, name, next)) return false;
  const rows = [...marks].map(([each, { value, fence }]) => [each, value, String(fence)]);
  writeSynced(directory, file, JSON.stringify(rows));
  return true;
}
