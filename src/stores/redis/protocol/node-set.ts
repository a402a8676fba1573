/** A set of nodes: bit i stands for the node with index i. At most 31 nodes. */
export type NodeSet = number;

/** Returns the set of these nodes, or of all `count` nodes if `among` is undefined. */
export function nodeSetOf(among: readonly number[] | undefined, count: number): NodeSet {
  if (among === undefined) return -1 >>> (32 - count);
  let set = 0;
  for (const index of among) set |= 1 << index;
  return set;
}

export function indicesIn(set: NodeSet): number[] {
  const indices: number[] = [];
  for (let index = 0; set >>> index !== 0; index += 1) {
    if ((set & (1 << index)) !== 0) indices.push(index);
  }
  return indices;
}

export function sizeOf(set: NodeSet): number {
  let count = 0;
  for (let rest = set; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}
