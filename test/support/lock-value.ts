/** Number of fences that an acquire reserves if it has to wait. Its lock has the greatest. */
const reservedMax = 32n;

/** True if a lock's value is that of a lease with this fence. */
export function isLockOf(value: unknown, { fence }: { readonly fence: bigint }): boolean {
  const kept = BigInt(/\|(\d+)$/.exec(String(value))?.[1] ?? 0);
  return kept >= fence && kept < fence + reservedMax;
}
