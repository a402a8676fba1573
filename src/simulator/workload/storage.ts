import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";
import { Register } from "./register.ts";

/**
 * Storage that the locks protect. For each resource it has one register that checks fences and one
 * that does not.
 */
export class Storage {
  readonly #scene: Scene;
  readonly #random: SeededRandom;
  readonly #lateChance: number;
  readonly #lateMs: number;
  readonly #plain = new Map<string, Register>();
  readonly #fenced = new Map<string, Register>();

  constructor(scene: Scene, lateChance: number, lateMs: number) {
    this.#scene = scene;
    this.#random = scene.random.fork("storage");
    this.#lateChance = lateChance;
    this.#lateMs = lateMs;
  }

  plain(resource: string): Register {
    return registerOf(this.#plain, resource, false);
  }

  fenced(resource: string): Register {
    return registerOf(this.#fenced, resource, true);
  }

  get plainTotals(): ReturnType<typeof totals> {
    return totals(this.#plain);
  }

  get fencedTotals(): ReturnType<typeof totals> {
    return totals(this.#fenced);
  }

  /** Runs `work` in the storage after a delay, even if the client's process crashes meanwhile. */
  request<Result>(machine: SimulatedProcess, work: () => Result): Promise<Result> {
    return new Promise((resolve) => {
      this.#scene.after(this.#delayMs(), () => {
        const result = work();
        this.#scene.after(this.#random.exponential(1), () =>
          machine.enter("network", () => resolve(result)),
        );
      });
    });
  }

  #delayMs(): number {
    const late = this.#random.chance(this.#lateChance);
    return this.#random.exponential(1) + (late ? this.#random.exponential(this.#lateMs) : 0);
  }
}

function registerOf(registers: Map<string, Register>, name: string, fenced: boolean): Register {
  let register = registers.get(name);
  if (register === undefined) {
    register = new Register(fenced);
    registers.set(name, register);
  }
  return register;
}

function totals(registers: ReadonlyMap<string, Register>): Register["tally"] {
  const all = [...registers.values()].map(({ tally }) => tally);
  const sum = (each: (tally: Register["tally"]) => number): number =>
    all.reduce((total, tally) => total + each(tally), 0);
  return {
    accepted: sum(({ accepted }) => accepted),
    rejected: sum(({ rejected }) => rejected),
    lost: sum(({ lost }) => lost),
  };
}
