import { createHash } from "node:crypto";
import { InvalidOptionError } from "../core/errors.ts";
import { fenceOf, guardedResources, type Fenced } from "./guard.ts";

/** Providers cut off or refuse keys beyond 64 characters here and there. */
const keyLengthMax = 64;

/**
 * A key for what cannot compare fences but remembers keys: payment providers, mail services, a
 * unique column. The same lease and purpose give the same key every time and on every machine;
 * another resource, tenure or purpose gives another.
 *
 * At most 64 characters of `A-Z a-z 0-9 . _ ~ -`; longer ones are replaced by a hash of 43.
 *
 * The next tenure has another fence and so another key. Where the effect must happen once over
 * all tenures, store the key in a fenced row before you use it, and let the next holder use the
 * stored one.
 */
export function idempotencyKey(fenced: Fenced, purpose?: string): string {
  if (purpose !== undefined && (typeof purpose !== "string" || purpose.length === 0)) {
    throw new InvalidOptionError("purpose", "a text that is not empty", purpose);
  }
  const fence = fenceOf(fenced);
  // A dot never occurs inside a part, so no two different lists of parts look the same. A lone
  // tilde is no escape: it stands for "no purpose".
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
