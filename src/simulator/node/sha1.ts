const rounds = [
  { add: 0x5a827999, mix: (b: number, c: number, d: number) => (b & c) | (~b & d) },
  { add: 0x6ed9eba1, mix: (b: number, c: number, d: number) => b ^ c ^ d },
  { add: 0x8f1bbcdc, mix: (b: number, c: number, d: number) => (b & c) | (b & d) | (c & d) },
  { add: 0xca62c1d6, mix: (b: number, c: number, d: number) => b ^ c ^ d },
] as const;

/** Returns the SHA-1 in hexadecimal, like `redis.sha1hex`. */
export function sha1(bytes: Uint8Array): string {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor((bytes.length * 8) / 2 ** 32));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);
  const state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  for (let start = 0; start < padded.length; start += 64) addBlock(state, view, start);
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function addBlock(state: number[], view: DataView, start: number): void {
  const words: number[] = [];
  let [a = 0, b = 0, c = 0, d = 0, e = 0] = state;
  for (let step = 0; step < 80; step += 1) {
    const back = (by: number): number => words[step - by] ?? 0;
    const word =
      step < 16
        ? view.getInt32(start + step * 4)
        : rotated(back(3) ^ back(8) ^ back(14) ^ back(16), 1);
    words.push(word);
    const round = rounds[Math.floor(step / 20)] ?? rounds[0];
    const next = (rotated(a, 5) + round.mix(b, c, d) + e + round.add + word) | 0;
    [a, b, c, d, e] = [next, a, rotated(b, 30), c, d];
  }
  for (const [index, word] of [a, b, c, d, e].entries()) {
    state[index] = ((state[index] ?? 0) + word) | 0;
  }
}

function rotated(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}
