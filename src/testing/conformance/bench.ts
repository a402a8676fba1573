import type { Lease } from "../../core/lease/lease.ts";
import type { Locks } from "../../core/locks.ts";
import type { LockDefaults, LockOptions } from "../../core/options.ts";
import type { StoreCapabilities } from "../../core/store.ts";
import { check } from "./check.ts";
import type { ConformanceCase, ConformanceHarness } from "./harness.ts";

/** Time limit for an event that must happen. Events usually come much earlier. */
const patienceMs = 60_000;
const stepMs = 10;

let casesRun = 0;

/**
 * Creates a case. When `run` ends, closes the managers of the case and checks that its names are
 * free.
 */
export function conformanceCase(
  name: string,
  run: (bench: Bench) => Promise<void>,
): ConformanceCase {
  return {
    name,
    async run(harness) {
      const bench = new Bench(harness);
      try {
        await run(bench);
      } finally {
        await bench.closeAll();
      }
      await bench.checkNothingLeft();
    },
  };
}

/** Tools of a case: managers, names that no other case uses, and time. */
export class Bench {
  readonly capabilities: StoreCapabilities;
  readonly maxTtlMs: number;
  readonly shortTtlMs: number;
  readonly settleMs: number;
  readonly servesInOrder: boolean;
  readonly #harness: ConformanceHarness;
  readonly #opened: Locks[] = [];
  readonly #resources: string[] = [];
  readonly #run: string;

  constructor(harness: ConformanceHarness) {
    casesRun += 1;
    this.#run = `${harness.namespace}-${casesRun}`;
    this.#harness = harness;
    this.capabilities = harness.capabilities;
    this.maxTtlMs = harness.maxTtlMs;
    this.shortTtlMs = harness.shortTtlMs ?? 400;
    this.settleMs = harness.settleMs ?? 50;
    this.servesInOrder = harness.servesInOrder ?? false;
  }

  /** TTL of a lease that does not expire while a case runs. */
  get longTtlMs(): number {
    return Math.min(this.maxTtlMs, 20_000);
  }

  /** Options of a lease that is meant to expire. */
  get brief(): LockOptions {
    return { ttl: this.shortTtlMs, renew: false };
  }

  async open(defaults: LockDefaults = {}): Promise<Locks> {
    const locks = await this.#harness.open({ ttl: this.longTtlMs, ...defaults });
    this.#opened.push(locks);
    return locks;
  }

  /** Opens a manager with only these defaults, to test how the manager checks them. */
  async openWith(defaults: LockDefaults): Promise<Locks> {
    const locks = await this.#harness.open(defaults);
    this.#opened.push(locks);
    return locks;
  }

  /**
   * Returns a name that only this case uses. All names of a case share a hash tag, so that a Redis
   * Cluster keeps them in one slot.
   */
  resource(suffix: string = "resource"): string {
    const name = `{${this.#run}}${suffix}`;
    this.#resources.push(name);
    return name;
  }

  /** Lets the store delete what it keeps of free locks. */
  async cleanUp(): Promise<void> {
    await this.#harness.cleanUp?.();
  }

  /** Lets `ms` go by. */
  async pass(ms: number): Promise<void> {
    if (this.#harness.advance !== undefined) await this.#harness.advance(ms);
    else await new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** Lets time go by until `condition` holds. */
  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    for (let passedMs = 0; passedMs < patienceMs; passedMs += stepMs) {
      if (await condition()) return;
      await this.pass(stepMs);
    }
    throw new Error(`it never came about that ${what}`);
  }

  /** Lets time go by until `call` has settled, and returns its outcome. */
  async settled<Result>(what: string, call: Promise<Result>): Promise<Result> {
    let settled = false;
    const note = (): void => {
      settled = true;
    };
    call.then(note, note);
    await this.until(`${what} settles`, () => settled);
    return await call;
  }

  /**
   * Lets time go by until the signal of the lease aborts. Does not read the signal during that
   * time.
   */
  async lost(lease: Lease): Promise<void> {
    let reported = lease.state === "lost";
    lease.signal.addEventListener("abort", () => {
      reported = true;
    });
    await this.until("a lease that ended reports it by its signal", () => reported);
  }

  async closeAll(): Promise<void> {
    const closing = Promise.all(this.#opened.splice(0).map((locks) => locks.close()));
    await this.settled("close", closing);
  }

  /**
   * Checks that all names of the case are free, or become free when the TTL of a lost lease ends.
   */
  async checkNothingLeft(): Promise<void> {
    const locks = await this.#harness.open();
    try {
      for (const resource of this.#resources) {
        await this.until(`${resource} is free when the case is over`, async () => {
          const { state } = await locks.inspect(resource);
          check(state !== "unknown", `${resource} could not be inspected`);
          return state === "free";
        });
      }
    } finally {
      await this.settled("close", locks.close());
    }
  }
}
