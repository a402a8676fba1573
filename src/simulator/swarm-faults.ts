import type { Fault, FaultKind } from "./scenario.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Temper of a world: which faults a seed draws for it. */
export type Temper =
  /** Faults keep all assumptions of mutual exclusion, so every overlap of leases is a bug. */
  | "timed"
  /**
   * Keys vanish and clocks jump, so that no time can be relied upon: leases may overlap, but fences
   * must be correct.
   */
  | "untimed"
  /** Like `untimed`, but without pauses. All clients compete at once, so that votes interleave. */
  | "storm"
  /** Nodes lose their data, often several at the same time. */
  | "lossy"
  /** Nodes lose data one by one, each after the previous node was admitted again. */
  | "rolling"
  /**
   * An attempt begins before a node loses its data, and ends after clients have detected the loss:
   * it straddles the loss.
   */
  | "straddling"
  /** Clocks of nodes are set forward while leases have no more votes than a quorum. */
  | "stepping"
  /** Random faults of all kinds. */
  | "mixed";

const timedKinds: readonly FaultKind[] = [
  "cut",
  "ring",
  "reset",
  "lag",
  "crash",
  "freeze",
  "slow",
  "snapshot",
  "flush",
  "evict-record",
  "script-flush",
  "step-client",
  "pause",
  "kill",
];
const allKinds: readonly FaultKind[] = [...timedKinds, "evict", "step-node"];
const lossyKinds: readonly FaultKind[] = ["crash", "snapshot", "flush", "evict-record"];

export interface Sizes {
  readonly nodeCount: number;
  readonly clientCount: number;
  readonly safetyMs: number;
  readonly ttlMs: number;
  readonly quarantineMs: number;
}

/** Returns the faults of a world, sorted by time. */
export function faultsOf(random: SeededRandom, temper: Temper, sizes: Sizes): Fault[] {
  const faults = [...commonFaults(random, temper, sizes), ...ownFaults(random, temper, sizes)];
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function commonFaults(random: SeededRandom, temper: Temper, sizes: Sizes): Fault[] {
  const kinds = kindsOf(random, temper);
  const count = random.pick([0, 3, 8, 20, 40]);
  if (kinds.length === 0 || temper === "storm") return [];
  if (temper === "rolling" || temper === "straddling" || temper === "stepping") return [];
  return Array.from({ length: count }, () => faultOf(random, random.pick(kinds), sizes));
}

function ownFaults(random: SeededRandom, temper: Temper, sizes: Sizes): Fault[] {
  if (temper === "rolling") return rollingFaults(random, sizes);
  if (temper === "straddling") return straddlingFaults(random, sizes);
  if (temper === "stepping") return steppingFaults(random, sizes);
  const { safetyMs, ttlMs } = sizes;
  const untimed: readonly FaultKind[] = ["evict", "evict", "evict", "evict", "step-node", "reset"];
  switch (temper) {
    case "untimed": {
      const count = random.integer(30, 250);
      return Array.from({ length: count }, () => faultOf(random, random.pick(untimed), sizes));
    }
    case "storm": {
      const count = (safetyMs / ttlMs) * random.pick([10, 20, 40]);
      const kinds: readonly FaultKind[] = [...untimed, "evict", "evict", "evict", "evict"];
      const storm = Array.from({ length: count }, () => faultOf(random, random.pick(kinds), sizes));
      const kills = Array.from({ length: random.integer(0, 10) }, () =>
        shortened(faultOf(random, "kill", sizes), ttlMs / 10),
      );
      return [...storm, ...kills];
    }
    case "timed":
    case "lossy":
    case "mixed":
      return [];
    default:
      return temper satisfies never;
  }
}

/**
 * Returns the faults of a `rolling` world: one loss of data per period. A period is long enough for
 * the quarantine and the admission of one node.
 */
function rollingFaults(random: SeededRandom, sizes: Sizes): Fault[] {
  const { nodeCount, safetyMs, ttlMs, quarantineMs } = sizes;
  const stretchMs = quarantineMs + 2 * ttlMs;
  const losses: readonly FaultKind[] = ["crash", "crash", "flush", "evict-record"];
  const faults: Fault[] = [];
  let node = random.integer(0, nodeCount - 1);
  for (let startMs = 0; startMs < safetyMs; startMs += stretchMs) {
    const drawn = faultOf(random, random.pick(losses), sizes);
    const atMs = startMs + random.between(0, ttlMs);
    const fault = { ...shortened(drawn, ttlMs / 4), atMs, node } as Fault;
    const kept = random.pick(["nothing", "snapshot"] as const);
    faults.push(fault.kind === "crash" ? { ...fault, kept } : fault);
    const snapshotMs = Math.max(0, atMs - random.exponential(ttlMs));
    faults.push({ kind: "snapshot", atMs: snapshotMs, node });
    node = (node + random.integer(Math.min(1, nodeCount - 1), nodeCount - 1)) % nodeCount;
    // While clients are cut off from a node, its fence counter stays smaller than on other nodes.
    // A restarted client has not received any fence yet.
    for (let left = random.integer(0, 3); left > 0; left -= 1) {
      const cut = faultOf(random, "cut", sizes);
      const forMs = random.between(0, 2 * stretchMs);
      faults.push({ ...cut, atMs: startMs + random.between(0, stretchMs), forMs } as Fault);
    }
    for (let left = random.integer(0, 2); left > 0; left -= 1) {
      const kill = shortened(faultOf(random, "kill", sizes), ttlMs / 2);
      faults.push({ ...kill, atMs: startMs + random.between(0, stretchMs) });
    }
  }
  return faults;
}

/**
 * Returns the faults of a `straddling` world, around a loss of data on a first node. One slow
 * client has the first node's vote, waits for the second node's vote, and cannot reach the third
 * node. At the time of the loss, a restarted client checks all nodes. Afterwards, all clients but
 * the slow one reach only the first and the third node.
 */
function straddlingFaults(random: SeededRandom, sizes: Sizes): Fault[] {
  const { nodeCount, clientCount, safetyMs, ttlMs, quarantineMs } = sizes;
  const stretchMs = quarantineMs + 3 * ttlMs;
  const faults: Fault[] = [];
  for (let startMs = ttlMs; startMs < safetyMs; startMs += stretchMs) {
    const first = random.integer(0, nodeCount - 1);
    const [second, third] = [(first + 1) % nodeCount, (first + 2) % nodeCount];
    const slow = random.integer(0, clientCount - 1);
    const newcomer = (slow + 1) % clientCount;
    const both = { kind: "cut", direction: "both" } as const;
    faults.push({ ...both, atMs: startMs, forMs: ttlMs, client: slow, node: third });
    const byMs = ttlMs / 3;
    faults.push({ kind: "lag", atMs: startMs, forMs: ttlMs, client: slow, node: second, byMs });
    const lostMs = startMs + random.between(0, ttlMs / 2);
    const crash = { kind: "crash", kept: "nothing", silent: false } as const;
    faults.push({ ...crash, atMs: lostMs, forMs: 0.1, node: first });
    const forMs = random.between(0.1, ttlMs / 20);
    faults.push({ kind: "kill", atMs: lostMs, forMs, client: newcomer });
    // All other clients are cut off from the second node. The restarted client is cut off after its
    // first check of all nodes.
    for (let client = 0; client < clientCount; client += 1) {
      if (client === slow) continue;
      const atMs = client === newcomer ? lostMs + ttlMs / 5 : startMs;
      faults.push({ ...both, atMs, forMs: stretchMs - ttlMs / 4, client, node: second });
    }
    faults.push({
      kind: "pause",
      atMs: startMs + ttlMs,
      forMs: stretchMs,
      client: slow,
      suspended: false,
    });
  }
  return faults;
}

/**
 * Returns the faults of a `stepping` world: a client holds a lease with the votes of just a quorum,
 * and replies of one more node arrive late. Then the clock of a node of the quorum is set forward.
 */
function steppingFaults(random: SeededRandom, sizes: Sizes): Fault[] {
  const { nodeCount, clientCount, safetyMs, ttlMs } = sizes;
  const size = Math.floor(nodeCount / 2) + 1;
  const faults: Fault[] = [];
  for (let startMs = ttlMs; startMs < safetyMs; startMs += 3 * ttlMs) {
    const first = random.integer(0, nodeCount - 1);
    const nodeAt = (place: number): number => (first + place) % nodeCount;
    const client = random.integer(0, clientCount - 1);
    const cut = { kind: "cut", client } as const;
    for (let place = size + 1; place < nodeCount; place += 1) {
      const [atMs, forMs, node] = [startMs, 2.5 * ttlMs, nodeAt(place)];
      faults.push({ ...cut, direction: "both", atMs, forMs, node });
    }
    const staleMs = startMs + random.between(0, ttlMs / 2);
    const stale = { ...cut, node: nodeAt(size) };
    faults.push({ ...stale, direction: "back", atMs: staleMs, forMs: ttlMs / 2 });
    const cutMs = staleMs + random.between(0, ttlMs / 2);
    faults.push({ ...stale, direction: "there", atMs: cutMs, forMs: 2 * ttlMs });
    const lag = { kind: "lag", client, node: nodeAt(1) } as const;
    const byMs = ttlMs * random.pick([0.02, 0.07]);
    faults.push({ ...lag, atMs: startMs, forMs: 2.5 * ttlMs, byMs });
    for (let steps = random.integer(1, 3); steps > 0; steps -= 1) {
      const atMs = cutMs + random.between(0, random.pick([0.7, 2]) * ttlMs);
      faults.push({ kind: "step-node", atMs, node: first, byMs: ttlMs * random.between(2, 6) });
    }
  }
  return faults;
}

function shortened(fault: Fault, forMsMax: number): Fault {
  return "forMs" in fault ? { ...fault, forMs: Math.min(fault.forMs, forMsMax) } : fault;
}

function kindsOf(random: SeededRandom, temper: Temper): readonly FaultKind[] {
  if (temper === "lossy") return [...lossyKinds, ...timedKinds.filter(() => random.chance(0.2))];
  const pool = temper === "mixed" ? allKinds : timedKinds;
  const share = random.pick([0.2, 0.5, 0.9]);
  const kinds = pool.filter(() => random.chance(share));
  // An `untimed` world is there to check fences, for which its counters must last. So leaves out
  // the faults that delete them.
  if (temper !== "untimed") return kinds;
  return kinds.filter((kind) => kind === "snapshot" || !lossyKinds.includes(kind));
}

function faultOf(random: SeededRandom, kind: FaultKind, sizes: Sizes): Fault {
  const { nodeCount, clientCount, safetyMs, ttlMs, quarantineMs } = sizes;
  const atMs = random.between(0, safetyMs);
  const forMs = random.exponential(ttlMs * random.pick([0.1, 0.5, 2]));
  const node = random.integer(0, nodeCount - 1);
  const client = random.integer(0, clientCount - 1);
  const byMs = random.exponential(ttlMs * random.pick([0.05, 0.3]));
  const stepMs = random.pick([-1, 1]) * random.exponential(ttlMs * random.pick([0.3, 1, 5]));
  switch (kind) {
    case "cut":
      return { kind, atMs, forMs, client, node, direction: random.pick(["there", "back", "both"]) };
    case "ring":
      return { kind, atMs, forMs };
    case "reset":
      return { kind, atMs, client, node };
    case "lag":
      return { kind, atMs, forMs, client, node, byMs };
    case "crash": {
      const kept = random.pick(["all", "snapshot", "nothing", "nothing"] as const);
      const downMs = random.chance(0.7) ? forMs / 4 : random.exponential(quarantineMs);
      return { kind, atMs, forMs: downMs, node, kept, silent: random.chance(0.3) };
    }
    case "freeze":
      return { kind, atMs, forMs, node };
    case "slow":
      return { kind, atMs, forMs, node, byMs };
    case "step-node":
      return { kind, atMs, node, byMs: stepMs };
    case "step-client":
      return { kind, atMs, client, byMs: stepMs };
    case "pause":
      return { kind, atMs, forMs, client, suspended: random.chance(0.3) };
    case "kill":
    case "quit":
      return { kind, atMs, forMs, client };
    case "snapshot":
    case "flush":
    case "evict":
    case "evict-record":
    case "script-flush":
      return { kind, atMs, node };
    default:
      return kind satisfies never;
  }
}
