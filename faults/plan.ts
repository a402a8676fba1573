import { SeededRandom } from "../src/testing/seeded-random.ts";
import { kindTerms, type FaultKind, type Victim } from "./kinds.ts";

/** One link connects one client process with one node. */
export interface LinkName {
  readonly client: number;
  readonly node: number;
}

export interface PlannedFault {
  readonly id: number;
  readonly kind: FaultKind;
  /** Time since the start of the run. */
  readonly atMs: number;
  readonly durationMs: number;
  /** Empty for faults of clients and of links. */
  readonly nodes: readonly number[];
  /** Client of a fault of one client process; else undefined. */
  readonly client?: number;
  readonly links: readonly LinkName[];
  /** Step of a clock, delay of a link, or pause between two strikes. */
  readonly amountMs: number;
  /** What a cut link does with its held bytes when it heals. */
  readonly onHeal: "deliver" | "reset";
  readonly policy: "allkeys-lru" | "volatile-lru";
  /** How a long script ends: killed when the fault heals, or by itself. */
  readonly scriptEnd: "killed" | "by itself";
}

export interface PlanOptions {
  readonly seed: number;
  readonly durationMs: number;
  readonly nodes: number;
  readonly clients: number;
  /** False if there is no compiler for the library that shifts a clock. */
  readonly clockSteps: boolean;
  /** Draws from these kinds only. */
  readonly kinds: readonly FaultKind[];
}

const gapMs = [250, 1_400] as const;
/** Pause after a loss of data, in which the node has no other fault. */
const restMs = 300;

/** Draws the same faults for the same seed. Only plans them. */
export function drawPlan(options: PlanOptions): PlannedFault[] {
  return new Planner(options).draw();
}

class Planner {
  readonly #options: PlanOptions;
  readonly #kinds: readonly FaultKind[];
  readonly #random: SeededRandom;
  /** Moment until which a node, a client or a link has a fault already. */
  readonly #busyUntilMs = new Map<string, number>();

  constructor(options: PlanOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#kinds = options.kinds.filter((kind) => {
      const { shiftsClock, losesData } = kindTerms[kind];
      return (
        (shiftsClock !== true || options.clockSteps) && (losesData !== true || options.nodes > 1)
      );
    });
  }

  draw(): PlannedFault[] {
    const plan: PlannedFault[] = [];
    if (this.#kinds.length === 0) return plan;
    const endMs = this.#options.durationMs;
    for (let atMs = this.#between(...gapMs); atMs < endMs; atMs += this.#between(...gapMs)) {
      const kind = this.#kind();
      const durationMs = Math.round(this.#between(...kindTerms[kind].durationMs));
      if (atMs + durationMs >= endMs) continue;
      const fault = this.#fault(plan.length + 1, kind, Math.round(atMs), durationMs);
      if (fault !== undefined) plan.push(fault);
    }
    return plan;
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
      scriptEnd: this.#chance(0.5) ? ("killed" as const) : ("by itself" as const),
    };
    const victims = this.#victims(kindTerms[kind].victim, atMs, atMs + durationMs + restMs);
    return victims === undefined ? undefined : { ...common, ...victims };
  }

  #amountMs(kind: FaultKind): number {
    const step = this.#pick([3_000, 10_000, 60_000]) * (this.#chance(0.6) ? 1 : -1);
    const delay = Math.round(this.#between(5, 50) * (this.#chance(0.4) ? 12 : 1));
    const pause = Math.round(this.#between(15, 60) * (this.#chance(0.5) ? 8 : 1));
    if (kind === "delay") return delay;
    return kindTerms[kind].shiftsClock === true ? step : pause;
  }

  /** Returns undefined if all of them have a fault already. */
  #victims(
    victim: Victim,
    atMs: number,
    untilMs: number,
  ): Pick<PlannedFault, "nodes" | "client" | "links"> | undefined {
    switch (victim) {
      case "node": {
        const node = this.#free("node", this.#options.nodes, atMs, untilMs);
        return node === undefined ? undefined : { nodes: [node], links: [] };
      }
      case "nodes": {
        const nodes = this.#nodes(atMs, untilMs);
        return nodes.length === 0 ? undefined : { nodes, links: [] };
      }
      case "client": {
        const client = this.#free("client", this.#options.clients, atMs, untilMs);
        return client === undefined ? undefined : { nodes: [], client, links: [] };
      }
      case "links": {
        const links = this.#links(atMs, untilMs);
        return links.length === 0 ? undefined : { nodes: [], links };
      }
      default:
        return victim satisfies never;
    }
  }

  /** Returns one node, a majority of them, or all, without those that have a fault already. */
  #nodes(atMs: number, untilMs: number): number[] {
    const { nodes } = this.#options;
    const quorum = Math.floor(nodes / 2) + 1;
    const count = this.#pick([1, quorum, nodes]);
    const first = this.#index(nodes);
    return Array.from({ length: count }, (_, step) => (first + step) % nodes).filter((node) =>
      this.#take(`node ${node}`, atMs, untilMs),
    );
  }

  /** Returns one link, all links to one node, all links of one client, or those to a majority. */
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
    const total = this.#kinds.reduce((sum, kind) => sum + kindTerms[kind].weight, 0);
    let drawn = this.#random.fraction() * total;
    for (const kind of this.#kinds) {
      drawn -= kindTerms[kind].weight;
      if (drawn < 0) return kind;
    }
    return this.#kinds.at(-1) ?? "cut";
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
