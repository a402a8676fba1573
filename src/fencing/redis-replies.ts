import { StoreError } from "../core/errors.ts";

/** Replies of the guard's scripts: a list that starts with a verdict. */

export function replyOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw new StoreError("the guard script returned something else than a list", { cause: reply });
}

/** Returns the error for a key that is in use for something else. */
export function foreign(key: string, what: unknown): StoreError {
  return new StoreError(
    `the key ${JSON.stringify(key.slice(0, 200))} holds ${String(what)} and not a fenced value: ` +
      "fenced and plain writes cannot share a key",
  );
}

/**
 * Returns the value in the form in which the server stores it. Clients send text only, so bytes are
 * stored as base64, and `encoding` marks them.
 */
export function encoded(value: string | Uint8Array): { text: string; encoding: "" | "base64" } {
  if (typeof value === "string") return { text: value, encoding: "" };
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return { text: bytes.toString("base64"), encoding: "base64" };
}
