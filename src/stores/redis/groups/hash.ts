/**
 * 64-bit hash of a text, in two halves. Not cryptographic: it only has to spread evenly. Part of
 * the wire format of groups, so it must never change.
 */
export interface Hash {
  readonly high: number;
  readonly low: number;
}

/** Hashes the UTF-8 bytes: two FNV-1a style passes with different odd multipliers, each mixed. */
export function hashOf(text: string): Hash {
  let high = 0x811c9dc5;
  let low = 0x9747b28c;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 127) return hashOfBytes(new TextEncoder().encode(text));
    high = Math.imul(high ^ code, 0x01000193);
    low = Math.imul(low ^ code, 0x85ebca6b);
  }
  return { high: mixed(high), low: mixed(low) };
}

function hashOfBytes(bytes: Uint8Array): Hash {
  let high = 0x811c9dc5;
  let low = 0x9747b28c;
  for (const byte of bytes) {
    high = Math.imul(high ^ byte, 0x01000193);
    low = Math.imul(low ^ byte, 0x85ebca6b);
  }
  return { high: mixed(high), low: mixed(low) };
}

/** Finisher of MurmurHash3: every input bit affects every output bit. */
export function mixed(value: number): number {
  let bits = value ^ (value >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** Returns the hash as 16 hexadecimal digits. */
export function hexOf({ high, low }: Hash): string {
  return high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
}
