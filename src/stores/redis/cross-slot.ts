import { UnsupportedError } from "../../core/errors.ts";
import { slotOf } from "./cluster-dialect.ts";

/** Resources by the Cluster slot of their keys, groups and members in sorted order. */
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

/** A Cluster runs a script on one slot: several resources must share a hash tag. */
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
