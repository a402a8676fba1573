const slotCount = 16_384;

/** Table of the CRC16 by byte (XMODEM: polynomial 0x1021, initial value 0). */
const table = new Uint16Array(256).map((_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** Returns the CRC16 that Redis Cluster uses, over the UTF-8 bytes of `text`. */
export function crc16(text: string): number {
  let crc = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 127) return crc16OfBytes(new TextEncoder().encode(text));
    crc = ((crc << 8) ^ (table[((crc >> 8) ^ code) & 0xff] ?? 0)) & 0xffff;
  }
  return crc;
}

function crc16OfBytes(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) ^ (table[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  return crc;
}

/**
 * Returns the hash tag of a key: the first non-empty `{…}`. Redis Cluster hashes only the tag of
 * such a key. Undefined for a key without a tag.
 */
export function hashTagOf(key: string): string | undefined {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

/** Returns the Redis Cluster slot of a key, from 0 to 16383. */
export function hashSlot(key: string): number {
  return crc16(hashTagOf(key) ?? key) % slotCount;
}
