import type { AcquireCall } from "./acquire-call.ts";
import { HeldLease } from "./held-lease.ts";
import type { Holder } from "./holder.ts";
import type { LeaseHost } from "./lease-host.ts";
import type { Work } from "./locks.ts";
import type { Owners } from "./owners.ts";
import type { AsyncContext } from "./ports.ts";
import type { Scheduler } from "./scheduler.ts";
import { SelfDeadlockError } from "./self-deadlock-error.ts";

/** A `using` whose work a chain of asynchronous calls belongs to. */
class Enclosing {
  readonly lease: HeldLease;
  readonly outer: Enclosing | undefined;

  constructor(lease: HeldLease, outer: Enclosing | undefined) {
    this.lease = lease;
    this.outer = outer;
  }
}

/**
 * Refuses a call that would wait forever for what the work that makes it holds.
 *
 * Knowing that takes an asynchronous context around the work of `using`. In Node.js 20 the first
 * use of one costs every promise of the process about as much again as it takes without. So
 * contexts are used only from the first call of the manager with `wait: "forever"` on; the work of
 * that call itself is in one already.
 */
export class Nesting {
  readonly #context: AsyncContext | undefined;
  readonly #host: LeaseHost;
  #isUsed = false;

  constructor(context: AsyncContext | undefined, host: LeaseHost) {
    this.#context = context;
    this.#host = host;
  }

  /** Called before anything is sent. A wait with an end is left alone: it ends by itself. */
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

  /** The work of `lease`, in a context where the calls that it makes are known as its own. */
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
  readonly scheduler: Scheduler;
}

/** The holder, marked if it is this manager. */
export function withSelf(
  { owners }: Pick<OwnContext, "owners">,
  holder: Holder | undefined,
): Holder | undefined {
  if (holder === undefined || !owners.isOurs(holder.owner)) return holder;
  return { ...holder, self: true };
}

/** The same with the time since when, for an error: this looks through all leases. */
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
