import { UnsupportedError } from "../../../core/errors.ts";
import { slotOf } from "../cluster-dialect.ts";

/** Groups resources by the Cluster slot of their keys, sorted by slot. Members keep their order. */
export function bySlot(
  resources: readonly string[],
  keyOf: (resource: string) => string,
): readonly (readonly string[])[] {
  const groups = new Map<number, string[]>();
  for (const resource of resources) {
    const slot = slotOf(keyOf(resource));
    const group = groups.get(slot);
    if (group === undefined) groups.set(slot, [resource]);
    else group.push(resource);
  }
  return [...groups.entries()].sort(([a], [b]) => a - b).map(([, group]) => group);
}

/** Throws if the resources are in several slots: a Cluster runs a script on one slot. */
export function refuseCrossSlot(groups: readonly (readonly string[])[]): void {
  if (groups.length <= 1) return;
  const resources = groups.flat();
  const tagged = resources.map((resource) => `"{group}:${resource}"`).join(", ");
  throw new UnsupportedError(
    `these resources lie in ${groups.length} different slots of the Cluster and cannot be locked ` +
      `in one step: give their names one hash tag, for example ${tagged}, or set crossSlot to ` +
      `"ordered" to lock them one after the other`,
    { resources },
  );
}
