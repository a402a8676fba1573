import type { Inspection } from "../../core/store.ts";

/** One holder of one resource, as seen so far. */
export interface Sighting {
  readonly seen: Inspection;
  readonly sinceMs: number;
  /** True if the lock was held at the first look, so that its real age is greater. */
  readonly atLeast: boolean;
  /** Greatest time left seen so far, as an estimate of the TTL. */
  readonly fullMs: number;
}

export interface Change {
  readonly kind: "held" | "freed";
  readonly seen: Inspection;
}

/** Derives from successive looks how long each lock is held, because stores keep no history. */
export class Sightings {
  #known = new Map<string, Sighting>();
  #looks = 0;

  get all(): readonly Sighting[] {
    return [...this.#known.values()];
  }

  /** Takes the locks that are held now and returns what changed since the last call. */
  update(held: readonly Inspection[], nowMs: number): readonly Change[] {
    const changes: Change[] = [];
    const next = new Map<string, Sighting>();
    for (const seen of held) {
      const key = keyOf(seen);
      const known = this.#known.get(key);
      if (known === undefined) changes.push({ kind: "held", seen });
      next.set(key, {
        seen,
        sinceMs: known?.sinceMs ?? nowMs,
        atLeast: known?.atLeast ?? this.#looks === 0,
        fullMs: Math.max(known?.fullMs ?? 0, seen.remainingMs ?? 0),
      });
    }
    for (const [key, { seen }] of this.#known) {
      if (!next.has(key)) changes.unshift({ kind: "freed", seen });
    }
    this.#known = next;
    this.#looks += 1;
    return changes;
  }
}

function keyOf({ resource, nodes, fence }: Inspection): string {
  const owner = nodes.find(({ holder }) => holder !== undefined)?.holder?.owner;
  return JSON.stringify([resource, owner ?? String(fence)]);
}
