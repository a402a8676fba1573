/** Victim of a fault: one node, several nodes, one client process, or links between them. */
export type Victim = "node" | "nodes" | "client" | "links";

export interface KindTerms {
  readonly victim: Victim;
  /** Frequency of the fault relative to the others. */
  readonly weight: number;
  readonly durationMs: readonly [min: number, max: number];
  /**
   * True if the fault needs the library that shifts clocks: left out if that cannot be compiled.
   */
  readonly shiftsClock?: true;
  /** True if a node forgets its grants: left out if there is only one node. */
  readonly losesData?: true;
}

/** Faults that break an assumption are rarer, so that most of the run counts. */
const terms = {
  "kill-empty": { victim: "node", weight: 8, durationMs: [50, 1_500], losesData: true },
  "kill-keep": { victim: "node", weight: 8, durationMs: [50, 1_500] },
  "freeze-node": { victim: "node", weight: 10, durationMs: [150, 4_000] },
  "freeze-client": { victim: "client", weight: 16, durationMs: [200, 5_000] },
  "kill-client": { victim: "client", weight: 5, durationMs: [100, 1_000] },
  cut: { victim: "links", weight: 12, durationMs: [200, 4_000] },
  "cut-requests": { victim: "links", weight: 7, durationMs: [200, 4_000] },
  "cut-replies": { victim: "links", weight: 9, durationMs: [200, 4_000] },
  delay: { victim: "links", weight: 12, durationMs: [500, 4_000] },
  "lose-replies": { victim: "links", weight: 14, durationMs: [100, 3_000] },
  "kill-connections": { victim: "nodes", weight: 10, durationMs: [0, 2_000] },
  "kill-subscribers": { victim: "nodes", weight: 8, durationMs: [0, 2_000] },
  "clock-step": { victim: "node", weight: 3, durationMs: [500, 3_000], shiftsClock: true },
  "client-clock-step": { victim: "client", weight: 4, durationMs: [300, 3_000], shiftsClock: true },
  "script-flush": { victim: "node", weight: 6, durationMs: [0, 0] },
  "flush-all": { victim: "node", weight: 6, durationMs: [0, 0], losesData: true },
  "out-of-memory": { victim: "node", weight: 5, durationMs: [300, 2_500] },
  busy: { victim: "node", weight: 6, durationMs: [150, 1_500] },
  misconf: { victim: "node", weight: 5, durationMs: [300, 2_500] },
  evict: { victim: "node", weight: 2, durationMs: [200, 1_000], losesData: true },
} as const satisfies Readonly<Record<string, KindTerms>>;

export type FaultKind = keyof typeof terms;
export const faultKinds = Object.keys(terms) as readonly FaultKind[];
export const kindTerms: Readonly<Record<FaultKind, KindTerms>> = terms;

export function isFaultKind(name: string): name is FaultKind {
  return Object.hasOwn(terms, name);
}
