import { SeededRandom } from "../src/testing/seeded-random.ts";

export const faultKinds = [
  "kill-empty",
  "kill-keep",
  "freeze-node",
  "freeze-client",
  "kill-client",
  "cut",
  "cut-requests",
  "cut-replies",
  "delay",
  "clock-step",
  "script-flush",
  "flush-all",
  "out-of-memory",
  "evict",
] as const;
export type FaultKind = (typeof faultKinds)[number];

/** One link is the way from one client process to one node. */
export interface LinkName {
  readonly client: number;
  readonly node: number;
}

export interface PlannedFault {
  readonly id: number;
  readonly kind: FaultKind;
  /** From the start of the run. */
  readonly atMs: number;
  readonly durationMs: number;
  /** Whole nodes or processes, for faults of those; else undefined. */
  readonly node?: number;
  readonly client?: number;
  readonly links: readonly LinkName[];
  /** How far a clock is stepped, or how long a link delays. */
  readonly amountMs: number;
  /** What a cut link does with what it held back when it heals. */
  readonly onHeal: "deliver" | "reset";
  readonly policy: "allkeys-lru" | "volatile-lru";
}

export interface PlanOptions {
  readonly seed: number;
  readonly durationMs: number;
  readonly nodes: number;
  readonly clients: number;
  /** False where no compiler was found to make the library that shifts a clock. */
  readonly clockSteps: boolean;
}

/** Faults that break an assumption are rarer, so that most of the time counts. */
const weights: Readonly<Record<FaultKind, number>> = {
  "kill-empty": 8,
  "kill-keep": 8,
  "freeze-node": 10,
  "freeze-client": 16,
  "kill-client": 5,
  cut: 12,
  "cut-requests": 7,
  "cut-replies": 9,
  delay: 12,
  "clock-step": 3,
  "script-flush": 6,
  "flush-all": 6,
  "out-of-memory": 5,
  evict: 2,
};

const durations: Readonly<Record<FaultKind, readonly [minMs: number, maxMs: number]>> = {
  "kill-empty": [50, 1_500],
  "kill-keep": [50, 1_500],
  "freeze-node": [150, 4_000],
  "freeze-client": [200, 5_000],
  "kill-client": [100, 1_000],
  cut: [200, 4_000],
  "cut-requests": [200, 4_000],
  "cut-replies": [200, 4_000],
  delay: [500, 4_000],
  "clock-step": [500, 3_000],
  "script-flush": [0, 0],
  "flush-all": [0, 0],
  "out-of-memory": [300, 2_500],
  evict: [200, 1_000],
};

const gapMs = [250, 1_400] as const;
/** A node that lost its data is busy with itself for a while: not hit again at once. */
const restMs = 300;

/** The same faults for the same seed. Pure: nothing is done here. */
export function drawPlan(options: PlanOptions): PlannedFault[] {
  return new Planner(options).draw();
}

class Planner {
  readonly #options: PlanOptions;
  readonly #random: SeededRandom;
  /** Until when a node, a client or a link has a fault already. */
  readonly #busyUntilMs = new Map<string, number>();

  constructor(options: PlanOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  draw(): PlannedFault[] {
    const plan: PlannedFault[] = [];
    for (let atMs = this.#between(...gapMs); ; atMs += this.#between(...gapMs)) {
      const kind = this.#kind();
      const durationMs = Math.round(this.#between(...durations[kind]));
      if (atMs + durationMs >= this.#options.durationMs) return plan;
      const fault = this.#fault(plan.length + 1, kind, Math.round(atMs), durationMs);
      if (fault !== undefined) plan.push(fault);
    }
  }

  #fault(id: number, kind: FaultKind, atMs: number, durationMs: number): PlannedFault | undefined {
    const common = {
      id,
      kind,
      atMs,
      durationMs,
      amountMs: this.#amountMs(kind),
      onHeal: this.#chance(0.6) ? ("deliver" as const) : ("reset" as const),
      policy: this.#chance(0.5) ? ("allkeys-lru" as const) : ("volatile-lru" as const),
    };
    const untilMs = atMs + durationMs + restMs;
    switch (kind) {
      case "freeze-client":
      case "kill-client": {
        const client = this.#free("client", this.#options.clients, atMs, untilMs);
        return client === undefined ? undefined : { ...common, client, links: [] };
      }
      case "cut":
      case "cut-requests":
      case "cut-replies":
      case "delay": {
        const links = this.#links(atMs, untilMs);
        return links.length === 0 ? undefined : { ...common, links };
      }
      default: {
        const node = this.#free("node", this.#options.nodes, atMs, untilMs);
        return node === undefined ? undefined : { ...common, node, links: [] };
      }
    }
  }

  #amountMs(kind: FaultKind): number {
    const step = this.#pick([3_000, 10_000, 60_000]) * (this.#chance(0.6) ? 1 : -1);
    const delay = Math.round(this.#between(5, 50) * (this.#chance(0.4) ? 12 : 1));
    return kind === "clock-step" ? step : delay;
  }

  /** One way, all ways to one node, all ways of one client, or those to a majority. */
  #links(atMs: number, untilMs: number): LinkName[] {
    const { nodes, clients } = this.#options;
    const shape = this.#pick(["one", "node", "client", "majority"]);
    const client = this.#index(clients);
    const node = this.#index(nodes);
    const quorum = Math.floor(nodes / 2) + 1;
    const links: LinkName[] = [];
    for (let each = 0; each < nodes; each += 1) {
      const near = (each - node + nodes) % nodes < quorum;
      if (shape === "client" || (shape === "majority" && near)) links.push({ client, node: each });
    }
    for (let each = 0; each < clients; each += 1) {
      if (shape === "node") links.push({ client: each, node });
    }
    if (shape === "one") links.push({ client, node });
    return links.filter((link) => this.#take(`link ${link.client} ${link.node}`, atMs, untilMs));
  }

  #free(what: string, count: number, atMs: number, untilMs: number): number | undefined {
    const first = this.#index(count);
    for (let step = 0; step < count; step += 1) {
      const index = (first + step) % count;
      if (this.#take(`${what} ${index}`, atMs, untilMs)) return index;
    }
    return undefined;
  }

  #take(name: string, atMs: number, untilMs: number): boolean {
    if ((this.#busyUntilMs.get(name) ?? 0) > atMs) return false;
    this.#busyUntilMs.set(name, untilMs);
    return true;
  }

  #kind(): FaultKind {
    const kinds = faultKinds.filter((kind) => kind !== "clock-step" || this.#options.clockSteps);
    const total = kinds.reduce((sum, kind) => sum + weights[kind], 0);
    let drawn = this.#random.fraction() * total;
    for (const kind of kinds) {
      drawn -= weights[kind];
      if (drawn < 0) return kind;
    }
    return "cut";
  }

  #between(min: number, max: number): number {
    return min + this.#random.fraction() * (max - min);
  }

  #chance(probability: number): boolean {
    return this.#random.fraction() < probability;
  }

  #index(count: number): number {
    return Math.floor(this.#random.fraction() * count);
  }

  #pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.#index(items.length)] ?? items[0];
  }
}
