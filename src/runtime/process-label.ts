import { hostname } from "node:os";

/** Limit for the label of a lease. */
const labelLengthMax = 200;

/** Returns the default label of this process's leases, for people who list locks: `host:pid`. */
export function processLabel(): string {
  return `${hostname()}:${process.pid}`.slice(-labelLengthMax);
}
