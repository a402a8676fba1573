import { HoldfastError } from "../core/errors.ts";

/**
 * The candidate ended its own term, by `resign()` or `stop()`. This error is the `reason` of the
 * term's `signal`. The lease is released when the work has settled.
 */
export class TermEndedError extends HoldfastError {
  readonly reason: "resigned" | "stopped";

  constructor(name: string, reason: "resigned" | "stopped") {
    super("TERM_ENDED", `the candidate for "${name}" has ${reason}`, { resources: [name] });
    this.reason = reason;
  }
}
