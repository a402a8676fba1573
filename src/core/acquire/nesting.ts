import type { AcquireCall } from "./acquire-call.ts";
import { HeldLease } from "../lease/held-lease.ts";
import type { Holder } from "../report/holder.ts";
import type { LeaseHost } from "../lease/lease-host.ts";
import type { Work } from "../locks.ts";
import type { Owners } from "./owners.ts";
import type { AsyncContext } from "../ports.ts";
import type { TimerScheduler } from "../time/scheduler.ts";
import { SelfDeadlockError } from "./self-deadlock-error.ts";

/** A `using` whose work is running; `outer` is the `using` around it. */
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
 * Idea: the work runs in an asynchronous context that has its lease. A call with `wait: "forever"`
 * for a resource of that lease, or of one around it, is refused.
 *
 * perf: in Node.js 20 the first use of a context about doubles the cost of every promise of the
 * process. So contexts are used only from the manager's first call with `wait: "forever"` on. The
 * work of that call itself already runs in one.
 */
export class Nesting {
  readonly #context: AsyncContext | undefined;
  readonly #host: LeaseHost;
  #isUsed = false;

  constructor(context: AsyncContext | undefined, host: LeaseHost) {
    this.#context = context;
    this.#host = host;
  }

  /** Throws SelfDeadlockError if the call would wait for its own work. Allows waits with an end. */
  refuse({ resources, options }: AcquireCall): void {
    if (options.waitMs !== Infinity) return;
    this.#isUsed = true;
    for (let around = this.#current(); around !== undefined; around = around.outer) {
      const { lease } = around;
      if (lease.terms.host !== this.#host || !isHeld(lease)) continue;
      const both = resources.filter((resource) => lease.resources.includes(resource));
      if (both.length > 0) throw new SelfDeadlockError(both, lease.label, sinceMs(lease));
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

interface OwnContext {
  readonly owners: Owners;
  readonly scheduler: TimerScheduler;
}

/** Returns the holder, marked if it is this manager. */
export function withSelf(
  { owners }: Pick<OwnContext, "owners">,
  holder: Holder | undefined,
): Holder | undefined {
  if (holder === undefined || !owners.isOurs(holder.owner)) return holder;
  return { ...holder, self: true };
}

/** Like `withSelf`, with the start of the lease. Only for errors: it searches all leases. */
export function withSince(
  context: OwnContext,
  resources: readonly string[],
  given: Holder | undefined,
): Holder | undefined {
  const holder = withSelf(context, given);
  if (holder?.self !== true) return holder;
  const lease = context.scheduler.lasting.find((task): task is HeldLease => {
    if (!(task instanceof HeldLease)) return false;
    return task.resources.some((resource) => resources.includes(resource)) && isHeld(task);
  });
  return lease === undefined ? holder : { ...holder, sinceMs: sinceMs(lease) };
}

function isHeld({ state }: HeldLease): boolean {
  return state === "held" || state === "doubtful";
}

function sinceMs({ terms, startedMs }: HeldLease): number {
  const { clock } = terms.host;
  return Math.round(clock.wallMs() - (clock.monotonicMs() - startedMs));
}
