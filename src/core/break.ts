import {
  Acquisition,
  asOutcome,
  type AcquireContext,
  type Acquired,
} from "./acquire/acquisition.ts";
import type { Refused } from "./acquire/backoff.ts";
import { ForeignHolderError, StoreError, UnsupportedError, type Holder } from "./errors.ts";
import type { ResolvedOptions } from "./options.ts";
import { quoted } from "./report/quoted.ts";
import type { Inspection } from "./store.ts";

/**
 * Limit for the wait until the broken holder's entry in the store's queue expires. A node keeps
 * such an entry for 150 ms.
 */
const entryMsMax = 500;

export interface BreakOptions {
  /**
   * Also deletes a value that Holdfast did not write.
   * @default false: it may be no lock at all, but other data under the same name
   */
  readonly foreign?: boolean;
}

/** Outcome of breaking a lock. */
export type BreakOutcome =
  | {
      readonly broken: true;
      readonly resource: string;
      /**
       * Owners that had the lock. There is more than one if rival attempts each locked some of the
       * nodes.
       */
      readonly holders: readonly Holder[];
      /**
       * Fence that is greater than the fences of the holders. Pass it to a guard, which then
       * rejects their writes. Undefined if the store does not fence, or if `break` could not
       * acquire the lock to get a fence. In the second case the next holder's fence is still
       * greater.
       */
      readonly fence: bigint | undefined;
    }
  | {
      readonly broken: false;
      readonly resource: string;
      /** `changed`: the holders that were seen are gone already, but the resource is not free. */
      readonly reason: "free" | "changed";
    };

/**
 * Takes the lock away from the holders that the inspection `seen` lists. A later holder keeps the
 * lock. Then acquires and releases the resource once, to get a fence that is greater than the
 * fences of those holders.
 */
export async function breakLock(
  context: AcquireContext,
  options: ResolvedOptions,
  seen: Inspection,
  foreignToo: boolean,
): Promise<BreakOutcome> {
  const { store, queues } = context;
  const { resource } = seen;
  if (store.break === undefined) {
    throw new UnsupportedError("this store cannot break a lock", { resources: [resource] });
  }
  const found = holdersIn(seen);
  const holders = found.filter(({ foreign }) => foreignToo || foreign !== true);
  const [other] = found;
  if (other !== undefined && holders.length === 0) throw foreignError(resource, other);
  if (holders.length === 0) {
    if (seen.state !== "unknown") return { broken: false, resource, reason: "free" };
    throw new StoreError(`too few nodes answered to say who holds "${resource}"`, {
      resources: [resource],
      cause: seen.nodes.find(({ cause }) => cause !== undefined)?.cause,
    });
  }
  const owners = holders.map(({ owner }) => owner);
  queues.endHandOvers(resource);
  const answer = await store.break(resource, owners);
  if (answer.kind === "failed") throw answer.error;
  if (answer.kind === "gone") {
    const { state } = await store.inspect(resource);
    return { broken: false, resource, reason: state === "free" ? "free" : "changed" };
  }
  const fence = await fenceAfter(context, options, resource, holders);
  return { broken: true, resource, holders, fence };
}

function foreignError(resource: string, { owner }: Holder): ForeignHolderError {
  return new ForeignHolderError(
    "string",
    `"${resource}" holds a value that Holdfast did not write, ${quoted(owner)}: another client's ` +
      "lock, or no lock at all. To delete it all the same, break it with foreign: true (--foreign)",
    { resources: [resource] },
  );
}

function holdersIn({ nodes }: Inspection): readonly Holder[] {
  const byOwner = new Map<string, Holder>();
  for (const { holder } of nodes) {
    const known = holder === undefined ? undefined : byOwner.get(holder.owner);
    // A grant can set a greater fence in a second round. A node that did not receive the second
    // round reports the smaller fence, so the greatest one counts.
    const older = (known?.fence ?? -1n) < (holder?.fence ?? 0n);
    if (holder !== undefined && older) byOwner.set(holder.owner, holder);
  }
  return [...byOwner.values()];
}

async function fenceAfter(
  context: AcquireContext,
  options: ResolvedOptions,
  resource: string,
  broken: readonly Holder[],
): Promise<bigint | undefined> {
  const once = { ...options, waitMs: 0, label: "break", signal: undefined };
  const take = (waitMs: number): Promise<Acquired | Refused> =>
    new Acquisition(context, [resource], { ...once, waitMs }).start(asOutcome);
  let outcome = await take(0);
  const isFree = !("grant" in outcome) && outcome.kind === "held" && outcome.holder === undefined;
  // The broken holder's entry in the store's queue may refuse other callers for a moment: tries
  // again until it expires. Not if calls of this manager wait, because one of them gets the lock
  // next.
  if (isFree && !context.queues.has(resource)) {
    outcome = await take(entryMsMax).catch(() => outcome);
  }
  if ("grant" in outcome) {
    context.queues.over(outcome.grant);
    await context.store.release(outcome.grant);
    return outcome.grant.fence;
  }
  if (outcome.kind !== "held") return undefined;
  // Another call acquired the resource first. The result is then the fence of that call, if it is
  // greater than the fences of the broken holders.
  const { fence } = await context.store.inspect(resource);
  const isGreater = broken.every((holder) => (holder.fence ?? -1n) < (fence ?? -1n));
  return isGreater ? fence : undefined;
}
