/**
 * Problem: users log events and inspections as JSON. `JSON.stringify` throws for a fence, which is
 * a `bigint`, and writes `{}` for an error.
 *
 * Idea: these objects get a `toJSON` that writes a fence as text, and an error as its message.
 */

const thrown = new Set(["cause", "error", "lastFault"]);

/** Returns a copy that `JSON.stringify` can write. Otherwise the copy looks like `value`. */
export function loggable<Value extends object>(value: Value): Value {
  // `toJSON` is not enumerable: comparisons, spread copies and `console.log` do not show it.
  return Object.defineProperty({ ...value }, "toJSON", { value: toJson });
}

function toJson(this: object): object {
  return jsonFields(this);
}

/** Returns the JSON of an error: its fields, without `result` (any size) and the stack. */
export function errorJson(error: Error): Record<string, unknown> {
  const { name, message, cause } = error;
  const own: object = error;
  return jsonFields({ name, message, ...own, result: undefined, cause });
}

/** Returns the message of an error, or the text of any other value that was thrown. */
export function messageOf(cause: unknown): string {
  if (cause instanceof Error) return cause.message || cause.name;
  try {
    return String(cause);
  } catch {
    return "an object that has no text";
  }
}

function jsonFields(value: object): Record<string, unknown> {
  const fields = Object.entries(value).map(([name, field]: [string, unknown]) => {
    // Code can throw any value, also a cycle or a large object, so a thrown value becomes text.
    return [name, thrown.has(name) && field !== undefined ? messageOf(field) : jsonOf(field)];
  });
  return Object.fromEntries(fields) as Record<string, unknown>;
}

function jsonOf(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Error) return messageOf(value);
  if (Array.isArray(value)) return value.map(jsonOf);
  return typeof value === "object" && value !== null ? jsonFields(value) : value;
}
