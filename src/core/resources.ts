import { InvalidOptionError } from "./errors.ts";

/**
 * Limit for the length of a name. A longer name is almost always a value that was passed by
 * mistake.
 */
export const resourceLengthMax = 4_096;
/**
 * Limit for the names in one call. One script locks all names of a call, and blocks the server
 * while it runs.
 */
export const resourceCountMax = 256;

/**
 * Returns the names to lock, checked, sorted and without duplicates. Since all calls lock names in
 * sorted order, two calls for the same set compete for its first name, and one of them gets all.
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
    // A lone surrogate is sent as U+FFFD. Two different names would then be one lock.
    throw new InvalidOptionError("resource", "well-formed Unicode", name);
  }
  return name;
}
