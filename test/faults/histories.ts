import type { AppliedWrite, ClientEvent, FaultEvent, History } from "../../faults/history.ts";

const ttlMs = 1_000;

/** Returns a correct history of two clients and one resource, in which a test plants mistakes. */
export function planted(changes: Partial<History> = {}): History {
  return {
    ttlMs,
    startMs: 0,
    healedMs: 5_000,
    endMs: 10_000,
    resources: ["r"],
    events: [...tenure("c1.0", 1, 100, 300), ...tenure("c2.0", 2, 6_000, 6_200)],
    faults: [],
    applied: [],
    misbehaved: [],
    ...changes,
  };
}

/** Events of a lease: requested 10 ms before the grant at `fromMs`, and released at `toMs`. */
export function tenure(who: string, fence: number, fromMs: number, toMs: number): ClientEvent[] {
  const about = { who, lease: `${who}/${fence}`, resource: "r" };
  const untilMs = fromMs + ttlMs;
  return [
    { ...about, t: fromMs - 10, what: "call" },
    { ...about, t: fromMs, what: "granted", fence: String(fence), untilMs },
    { ...about, t: toMs - 1, what: "look", trusted: true, untilMs },
    { ...about, t: toMs, what: "release" },
    { ...about, t: toMs + 5, what: "released", outcome: "released" },
  ];
}

export function fault(kind: string, fromMs: number, toMs: number, detail = ""): FaultEvent[] {
  const common = { id: fromMs, kind, nodes: [0], clients: [0], detail };
  return [
    { ...common, t: fromMs, phase: "begin" },
    { ...common, t: toMs, phase: "end" },
  ];
}

/** Writes of one register, each as `[op, base, n, fence, fenceBefore]`. */
export function applied(
  register: AppliedWrite["register"],
  writes: readonly (readonly [string, string, number, bigint?, bigint?])[],
): AppliedWrite[] {
  return writes.map(([op, base, n, fence, fenceBefore]) => ({
    register,
    resource: "r",
    op,
    base,
    n,
    ...(fence === undefined ? {} : { fence }),
    ...(fenceBefore === undefined ? {} : { fenceBefore }),
  }));
}
