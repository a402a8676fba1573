import type { Keyspace } from "./keyspace.ts";
import { Queues } from "./queues.ts";
import type { ScriptBody } from "./script-context.ts";
import { sha1 } from "./sha1.ts";

const ownBytesMax = 2_048;
const foreignBytesMax = 128;

/**
 * Works like `_shown.lua`. Returns the whole text of a value that Holdfast stored, and only the
 * beginning of any other value.
 */
export function shown(value: string): string {
  const bytes = new TextEncoder().encode(value);
  if (bytes.length <= ownBytesMax && /^hf:[!-~]+$/.test(value)) return value;
  const beginning = [...bytes.subarray(0, foreignBytesMax)]
    .map((byte) => (byte < 32 || byte > 126 ? "?" : String.fromCharCode(byte)))
    .join("");
  return bytes.length > foreignBytesMax ? `${beginning}...` : beginning;
}

/**
 * Works like `_exactly.lua`. Returns a text that identifies the value: the value itself, or its
 * beginning with its length and SHA-1.
 */
export function exactly(value: string): string {
  const text = shown(value);
  if (text === value) return text;
  const bytes = new TextEncoder().encode(value);
  return `${text} (${bytes.length} bytes, sha1 ${sha1(bytes)})`;
}

/** Works like `_wrong-type.lua`. A lock key of a simulated node holds a text or a hash. */
export function wrongType(key: string): string {
  return `X WRONGTYPE hash ${key}`;
}

/** Sets all keys. If a key holds another type, sets no key and returns the refusal. */
export function setAll(
  data: Keyspace,
  keys: readonly string[],
  value: string,
  ttlMs: number,
): string | undefined {
  for (const [index, key] of keys.entries()) {
    if (data.pttl(key) !== -2) {
      for (const undone of keys.slice(0, index)) data.delete(undone);
      return wrongType(key);
    }
    data.set(key, value, ttlMs);
  }
  return undefined;
}

/** Works like `break-foreign.lua`. */
export const breakForeign: ScriptBody = ({ data, keys, args }) => {
  const [key = ""] = keys;
  const value = data.textOf(key);
  if (value === undefined || exactly(value) !== args[0]) return "R 0 1";
  return `R ${data.delete(key)} 1`;
};

/** Works like `inspect.lua`. */
export const inspect: ScriptBody = (context) => {
  const { data, keys } = context;
  const [key = "", name = ""] = keys;
  const value = data.textOf(key);
  const waiters = Queues.waitersIn(context, name);
  if (value === undefined) return data.pttl(key) === -2 ? `F ${waiters}` : wrongType(key);
  return `I ${waiters} ${data.pttl(key)} ${exactly(value)}`;
};
