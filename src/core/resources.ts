import { InvalidOptionError } from "./errors.ts";

/** Longer names are almost always a value put where a name belongs. */
export const resourceLengthMax = 4_096;
/** One script call carries all of them, and nothing else runs on the server meanwhile. */
export const resourceCountMax = 256;

/**
 * Checks and orders what is to be locked: duplicates are one, and the order is the same for every
 * caller, so that two who want the same set meet at the same resource first.
 */
export function resourcesOf(value: unknown): readonly string[] {
  if (typeof value === "string") return [checked(value)];
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (given.length === 0) {
    throw new InvalidOptionError("resource", "a name or a list of at least one name", value);
  }
  const names = [...new Set(given.map(checked))];
  if (names.length > resourceCountMax) {
    throw new InvalidOptionError(
      "resource",
      `at most ${resourceCountMax} names`,
      `${names.length} names`,
    );
  }
  return names.length === 1 ? names : names.sort();
}

function checked(name: unknown): string {
  if (typeof name !== "string" || name.length === 0 || name.length > resourceLengthMax) {
    throw new InvalidOptionError(
      "resource",
      `a text of 1 to ${resourceLengthMax} characters`,
      typeof name === "string" && name.length > 0 ? `${name.length} characters` : name,
    );
  }
  if (!name.isWellFormed()) {
    // A lone surrogate becomes U+FFFD on the wire: two different names would be one lock.
    throw new InvalidOptionError("resource", "well-formed Unicode", name);
  }
  return name;
}
