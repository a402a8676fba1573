/** An acquire that has to wait reserves so many fences at once, and its lock has the greatest. */
const reservedMax = 32n;

/** Whether a lock's value is that of a lease with this fence. */
export function isLockOf(value: unknown, { fence }: { readonly fence: bigint }): boolean {
  const kept = BigInt(/\|(\d+)$/.exec(String(value))?.[1] ?? 0);
  return kept >= fence && kept < fence + reservedMax;
}
