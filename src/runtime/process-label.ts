import { hostname } from "node:os";
import { labelLengthMax } from "../core/options.ts";

/** Returns the default label of this process's leases, for people who list locks: `host:pid`. */
export function processLabel(): string {
  return `${hostname()}:${process.pid}`.slice(-labelLengthMax);
}
