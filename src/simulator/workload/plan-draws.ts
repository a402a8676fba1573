import type { WorkPlan } from "../scenario.ts";
import type { SeededRandom } from "../seeded-random.ts";

/** Draws the TTL of an acquire or an extend. */
export function lifeOf({ lives, ttlMs }: WorkPlan, random: SeededRandom): number {
  return lives === undefined ? ttlMs : random.pick(lives);
}

/** Returns the longest TTL that a lease may get. */
export function longestOf({ lives = [], ttlMs }: WorkPlan): number {
  return Math.max(ttlMs, ...lives);
}

/** Draws the label of an acquire, which may need to be encoded on the wire. */
export function labelOf({ lives }: WorkPlan, random: SeededRandom): { readonly label?: string } {
  if (lives === undefined || random.chance(0.5)) return {};
  return { label: random.pick(["job", "a job|12", "größe@1"]) };
}
