/**
 * Number of fence counters per node: a lock key uses the counter of its shard. The number and the
 * hash are part of the wire format: clients that differ would use different counters.
 */
export const shardCount = 1_024;
export const wireFormat = "1:crc16:1024";

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

export function shardOf(key: string): number {
  return crc16(key) % shardCount;
}
