import { createHash } from "node:crypto";
import { InvalidOptionError } from "../core/errors.ts";
import { fenceOf, guardedResources, type Fenced } from "./guard.ts";

/** Limit for the key length; some providers truncate or reject longer keys. */
const keyLengthMax = 64;

/**
 * Returns an idempotency key for services that cannot compare fences but store keys: payment
 * providers, mail services, a unique column. The same lease and purpose give the same key on every
 * machine; another resource, fence or purpose gives another key. Throws InvalidOptionError if
 * `purpose` is empty.
 *
 * The key has at most 64 characters of `A-Z a-z 0-9 . _ ~ -`; a longer key is replaced by a hash of
 * 43 characters.
 *
 * The next holder has another fence and therefore another key. If the effect must happen once
 * across all holders, store the key in a fenced row before you use it and let later holders use the
 * stored key.
 */
export function idempotencyKey(fenced: Fenced, purpose?: string): string {
  if (purpose !== undefined && (typeof purpose !== "string" || purpose.length === 0)) {
    throw new InvalidOptionError("purpose", "a text that is not empty", purpose);
  }
  const fence = fenceOf(fenced);
  // Escaped parts never contain a dot, so different lists of parts give different keys. "~" alone
  // is never an escape: it means "no purpose".
  const parts = [
    String(fence),
    purpose === undefined ? "~" : escaped(purpose),
    ...guardedResources(fenced, undefined).map(escaped),
  ];
  const key = parts.join(".");
  if (key.length <= keyLengthMax) return key;
  return createHash("sha256").update(key).digest("base64url");
}

function escaped(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      if (/[A-Za-z0-9_-]/.test(character)) return character;
      return `~${byte.toString(16).padStart(2, "0")}`;
    })
    .join("");
}
