// @ts-check
/** Counts failures of a library by kind, so that none is hidden and a report stays short. */

export class Failures {
  /** @type {Record<string, number>} */
  counts = {};

  /** @param {string} where @param {unknown} error */
  add(where, error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    // Names and numbers differ each time, so they are removed from the kind.
    const kind = `${where}: ${text}`.replaceAll(/\b[\w-]*\d[\w:-]*\b/g, "…").slice(0, 120);
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }
}

/** Returns the machine's monotonic time, which all its processes share. */
export function machineMs() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

export function cpuUs() {
  const { user, system } = process.cpuUsage();
  return user + system;
}
