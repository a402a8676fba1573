/** Table of the Redis Cluster CRC16 (XMODEM: polynomial 0x1021, initial value 0), by byte. */
const crcOfByte = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc & 0xffff;
});

/** Returns the Redis Cluster slot of a key, from 0 to 16383. */
export function hashSlot(key: string): number {
  const bytes = Buffer.from(hashTag(key));
  let crc = 0;
  for (const byte of bytes) {
    crc = ((crc << 8) & 0xffff) ^ (crcOfByte[(crc >> 8) ^ byte] ?? 0);
  }
  return crc & 0x3fff;
}

/** Returns the text between the first "{" and the next "}", or the whole key if there is none. */
function hashTag(key: string): string {
  const open = key.indexOf("{");
  if (open === -1) return key;
  const close = key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}
