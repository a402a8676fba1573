import { UnsupportedError } from "../../core/errors.ts";
import { slotOf } from "./cluster-dialect.ts";

/** A Cluster runs a script on one slot: several resources must share a hash tag. */
export function sameSlot(resources: readonly string[], keys: readonly string[]): void {
  const slots = new Set(keys.map(slotOf));
  if (slots.size <= 1) return;
  const tagged = resources.map((resource) => `"{group}:${resource}"`).join(", ");
  throw new UnsupportedError(
    `these resources lie in ${slots.size} different slots of the Cluster and cannot be locked in ` +
      `one step: give their names one hash tag, for example ${tagged}`,
    { resources },
  );
}
