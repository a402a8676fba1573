// @ts-check
/** Failures of a library, counted by their kind, so that none is hidden and none floods a report. */

export class Failures {
  /** @type {Record<string, number>} */
  counts = {};

  /** @param {string} where @param {unknown} error */
  add(where, error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    // Names of resources and numbers differ each time; the kind is what counts.
    const kind = `${where}: ${text}`.replaceAll(/\b[\w-]*\d[\w:-]*\b/g, "…").slice(0, 120);
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }
}

/** On the machine's monotonic clock, which all its processes share. */
export function machineMs() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

export function cpuUs() {
  const { user, system } = process.cpuUsage();
  return user + system;
}
