import { HoldfastError } from "./errors.ts";
import type { HeldLease } from "./lease/held-lease.ts";
import { isHeld, wallStartMs } from "./lease/keeper.ts";
import type { LeaseHost } from "./lease/lease.ts";
import type { Work } from "./locks.ts";
import type { AsyncContext } from "./ports.ts";
import { noNesting, timeOf } from "./report/holder.ts";
import { list, quoted } from "./report/quoted.ts";

/**
 * Work of a `using` made a call with `wait: "forever"` for a resource that the same `using` holds.
 * That call would wait for the end of the work, and the work for the end of the call.
 */
export class SelfDeadlockError extends HoldfastError {
  /** Label of the lease that holds the resource. */
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

/** A call of `using` whose work is running. `outer` is the call of `using` around it. */
class Enclosing {
  readonly lease: HeldLease;
  readonly outer: Enclosing | undefined;

  constructor(lease: HeldLease, outer: Enclosing | undefined) {
    this.lease = lease;
    this.outer = outer;
  }
}

/**
 * Problem: work of a `using` that waits forever for a resource of the same `using` never ends.
 *
 * Idea: the work runs in an asynchronous context (see AsyncContext) that has the lease. A call with
 * `wait: "forever"` is refused if that lease, or the lease of an enclosing `using`, holds one of
 * its resources.
 *
 * perf: in Node.js 20 the first use of a context about doubles the cost of every promise of the
 * process. So a manager uses contexts only from its first call with `wait: "forever"` on. If that
 * call is a `using`, its own work already runs in a context.
 */
export class Nesting {
  readonly #context: AsyncContext | undefined;
  readonly #host: LeaseHost;
  #isUsed = false;

  constructor(context: AsyncContext | undefined, host: LeaseHost) {
    this.#context = context;
    this.#host = host;
  }

  /** Throws SelfDeadlockError if the work that makes this call holds one of the resources. */
  refuse(resources: readonly string[]): void {
    this.#isUsed = true;
    for (let around = this.#current(); around !== undefined; around = around.outer) {
      const { lease } = around;
      if (lease.terms.host !== this.#host || !isHeld(lease)) continue;
      const both = resources.filter((resource) => lease.resources.includes(resource));
      if (both.length > 0) throw new SelfDeadlockError(both, lease.label, wallStartMs(lease));
    }
  }

  /** Returns `work`, wrapped in a context that links the calls that it makes to `lease`. */
  within<Result>(lease: HeldLease, work: Work<Result>): Work<Result> {
    const context = this.#context;
    if (!this.#isUsed || context === undefined) return work;
    const enclosing = new Enclosing(lease, this.#current());
    return (given) => context.run(enclosing, () => work(given));
  }

  #current(): Enclosing | undefined {
    const current = this.#context?.current();
    return current instanceof Enclosing ? current : undefined;
  }
}
