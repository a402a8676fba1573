const quotedLengthMax = 250;

/** Returns untrusted text for use in a message: quoted, on one line, and cut to a limit. */
export function quoted(text: string): string {
  const cut = text.length > quotedLengthMax ? `${text.slice(0, quotedLengthMax)}…` : text;
  return JSON.stringify(cut).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}

/** Returns the names of resources as text for a message. */
export function list(resources: readonly string[]): string {
  return resources.map((resource) => `"${resource}"`).join(", ");
}

/** Returns an invalid argument as short text for a message. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return String(value);
}
