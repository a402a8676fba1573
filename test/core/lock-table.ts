import type { AttemptOutcome } from "../../src/core/store.ts";
import type { CreateLocksOptions, Lease } from "../../src/index.ts";
import { type Behaviour, scene, type Scene } from "./fake-store.ts";

interface Entry {
  readonly owner: string;
  readonly untilMs: number;
  /** Written by a client of another library. */
  readonly foreign?: true;
}

export interface Table extends Scene {
  /** Current holder of each resource in the store. */
  readonly entries: Map<string, Entry>;
  /** Number of attempts that the store received. */
  readonly asked: () => number;
}

/** Pauses so long that only a notification can explain a grant. */
export const neverAskAgain = { minDelay: "1h", maxDelay: "1h" } as const;

/** Opens a manager on a store that excludes, and forgets a lock when its TTL is over. */
export function lockTable(
  more: (table: () => Table) => Behaviour = () => ({}),
  defaults: Omit<CreateLocksOptions, "runtime"> = {},
): Table {
  const entries = new Map<string, Entry>();
  const made: Scene = scene(
    {
      async attempt(request) {
        return attemptOn(table, request);
      },
      async release({ resources, owner }) {
        const ours = resources.filter((name) => entries.get(name)?.owner === owner);
        for (const name of ours) entries.delete(name);
        if (ours.length === resources.length) return { released: true };
        return { released: false, reason: "taken" };
      },
      ...more(() => table),
    },
    { wait: "forever", retry: neverAskAgain, ttl: "10s", ...defaults },
  );
  const table = { ...made, entries, asked: () => made.times("attempt").length };
  return table;
}

export function attemptOn(
  { entries, clock }: Pick<Table, "entries" | "clock">,
  { resources, owner, ttlMs }: { resources: readonly string[]; owner: string; ttlMs: number },
): AttemptOutcome {
  const nowMs = clock.monotonicMs();
  for (const name of resources) {
    const held = entries.get(name);
    if (held === undefined || held.untilMs <= nowMs) continue;
    const holder = { owner: held.owner, ...(held.foreign ? { foreign: held.foreign } : {}) };
    return { kind: "held", holder, cleanup: undefined };
  }
  for (const name of resources) entries.set(name, { owner, untilMs: nowMs + ttlMs });
  return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: ttlMs } };
}

/** Records under its name that a call has ended, and how. */
export function note(done: string[], name: string, call: Promise<Lease>): Promise<unknown> {
  return call.then(
    (lease) => {
      done.push(name);
      return lease;
    },
    (error: unknown) => {
      done.push(`${name}: ${error instanceof Error ? error.name : String(error)}`);
      return error;
    },
  );
}
