/** Sets of nodes as numbers: bit i stands for the node with index i. At most 31 nodes. */

/** Returns the set of these nodes, or of all `count` nodes if `among` is undefined. */
export function bitsOf(among: readonly number[] | undefined, count: number): number {
  if (among === undefined) return -1 >>> (32 - count);
  let bits = 0;
  for (const index of among) bits |= 1 << index;
  return bits;
}

export function indicesOf(bits: number): number[] {
  const indices: number[] = [];
  for (let index = 0; bits >>> index !== 0; index += 1) {
    if ((bits & (1 << index)) !== 0) indices.push(index);
  }
  return indices;
}

export function bitCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}
