import { hashSlot } from "../../../clients/hash-slot.ts";
import { UnsupportedError } from "../../../core/errors.ts";
import type { SteadyClock } from "../../../core/ports.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  ExtendOutcome,
  Grant,
  ProveOutcome,
  ReleaseOutcome,
} from "../../../core/store.ts";
import { lockKey } from "../commands/keys.ts";
import { type StoreSettings } from "./store-settings.ts";
import { attemptInOrder, inOrder, type RaisingStore } from "./ordered-groups.ts";

/**
 * Runs the steps of the protocol on a Cluster. A script can use only keys of one slot, so resources
 * of several slots are refused, or locked slot after slot, depending on the option `crossSlot`.
 */
export class SlotOrder implements RaisingStore {
  readonly #store: RaisingStore;
  readonly #options: StoreSettings;
  readonly #clock: SteadyClock;

  /** `store` locks resources of one slot. */
  constructor(store: RaisingStore, options: StoreSettings, clock: SteadyClock) {
    this.#store = store;
    this.#options = options;
    this.#clock = clock;
  }

  /**
   * Groups resources by the slot of their keys, sorted by slot. Resources of one slot keep their
   * order.
   */
  bySlot(resources: readonly string[]): readonly (readonly string[])[] {
    const groups = new Map<number, string[]>();
    for (const resource of resources) {
      const slot = hashSlot(lockKey(this.#options.prefix, resource));
      const group = groups.get(slot);
      if (group === undefined) groups.set(slot, [resource]);
      else group.push(resource);
    }
    return [...groups.entries()].sort(([a], [b]) => a - b).map(([, group]) => group);
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    const slots = this.bySlot(request.resources);
    if (slots.length === 1) return await this.#store.attempt(request);
    if (this.#options.crossSlot === "refuse") refuse(slots);
    const groups = slots.map((resources) => ({ store: this.#store, resources }));
    return await attemptInOrder(groups, request, this.#clock);
  }

  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    return inOrder.extend(this.#store, grant, ttlMs);
  }

  prove(grant: Grant): Promise<ProveOutcome> {
    return inOrder.prove(this.#store, grant);
  }

  release(grant: Grant): Promise<ReleaseOutcome> {
    return inOrder.release(this.#store, grant);
  }

  raise(grant: Grant, fence: bigint): Promise<Grant | undefined> {
    return this.#store.raise(grant, fence);
  }
}

function refuse(groups: readonly (readonly string[])[]): never {
  const resources = groups.flat();
  const tagged = resources.map((resource) => `"{group}:${resource}"`).join(", ");
  throw new UnsupportedError(
    `these resources lie in ${groups.length} different slots of the Cluster and cannot be locked ` +
      `in one step: give their names one hash tag, for example ${tagged}, or set crossSlot to ` +
      `"ordered" to lock them one after the other`,
    { resources },
  );
}
