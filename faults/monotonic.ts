/**
 * CLOCK_MONOTONIC in milliseconds: one clock for every process of the machine, so that the
 * histories of all clients and of the nemesis can be laid on one time line.
 */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
