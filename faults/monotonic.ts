/**
 * Returns CLOCK_MONOTONIC in milliseconds. It is the same for every process of the machine, so
 * that the histories of all clients and of the nemesis share one time line.
 */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
