import { HoldfastError } from "../errors.ts";
import { noNesting, timeOf } from "../report/holder.ts";
import { list, quoted } from "../report/quoted.ts";

/**
 * Work of a `using` made a call with `wait: "forever"` for a resource that the same `using` holds.
 * It would wait for itself.
 */
export class SelfDeadlockError extends HoldfastError {
  /** Label of the lease that holds it. */
  readonly label: string | undefined;
  /** Start of that lease: milliseconds since 1970, by the wall clock of this machine. */
  readonly sinceMs: number;

  constructor(resources: readonly string[], label: string | undefined, sinceMs: number) {
    const name = label === undefined ? "" : ` (label ${quoted(label)})`;
    super(
      "SELF_DEADLOCK",
      `${list(resources)} is held by this process since ${timeOf(sinceMs)}${name}, by the very ` +
        `work that would wait for it: ${noNesting}. Use the lease that the work has`,
      { resources },
    );
    this.label = label;
    this.sinceMs = sinceMs;
  }
}
