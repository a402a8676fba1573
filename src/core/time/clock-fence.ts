/**
 * Returns the next fence of a store that counts on one machine: the wall clock in µs since 1970, or
 * one more than the last fence, whichever is greater.
 *
 * Fences of Redis stores follow the clock as well. So after a change of the store, later fences are
 * still greater, and the guards of a table accept them.
 */
export function nextClockFence(last: bigint, wallMs: number): bigint {
  const clock = BigInt(Math.floor(wallMs)) * 1_000n;
  return clock > last ? clock : last + 1n;
}
