import { HoldfastError } from "../core/errors.ts";
import { quoted } from "../core/report/quoted.ts";

/** The key was used before with another fingerprint: two different requests share one key. */
export class KeyReusedError extends HoldfastError {
  constructor(key: string) {
    super("KEY_REUSED", `the key ${quoted(key)} was used before for something else`, {
      resources: [key],
    });
  }
}

/**
 * The work of this key began under an earlier lease and is not done. Its process may have died
 * before the work took effect, or after. Thrown only with `crash: "refuse"`. Look at what the work
 * does, then run it again with `crash: "run-again"`, or delete the record.
 */
export class OutcomeUnknownError extends HoldfastError {
  /** Fence of the lease under which the work began. */
  readonly fence: bigint;

  constructor(key: string, fence: bigint) {
    const what = `the work of ${quoted(key)} began under fence ${fence} and did not end`;
    super("OUTCOME_UNKNOWN", `${what}: it may have taken effect or not`, { resources: [key] });
    this.fence = fence;
  }
}
