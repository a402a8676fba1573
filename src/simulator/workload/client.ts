import { isHoldfastError, ReplicationError } from "../../core/errors.ts";
import type { Lease } from "../../core/lease/lease.ts";
import type { Locks } from "../../core/locks.ts";
import type { LockOptions } from "../../core/options.ts";
import type { RecordingStore } from "../process/recording-store.ts";
import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { WorkPlan } from "../scenario.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { Witness } from "../witness.ts";
import { labelOf, lifeOf, longestOf } from "./plan-draws.ts";
import { awakeMs, type Promises } from "./promises.ts";
import type { Storage } from "./storage.ts";

export interface ClientParts {
  readonly machine: SimulatedProcess;
  readonly locks: Locks;
  readonly recording: RecordingStore;
  readonly plan: WorkPlan;
  readonly storage: Storage;
  readonly witness: Witness;
  readonly promises: Promises;
  /** True if leases have fences. */
  readonly fencing: boolean;
  readonly onTenure: () => void;
}

/** User code of one client: acquires locks, updates the storage, releases, and repeats. */
export class SimulatedClient {
  readonly machine: SimulatedProcess;
  readonly #parts: ClientParts;
  readonly #random: SeededRandom;
  #isStopping = false;
  #closingSinceMs: number | undefined;
  #isPatient = false;
  #isClosed = false;
  #loops = 0;

  constructor(parts: ClientParts) {
    this.#parts = parts;
    this.machine = parts.machine;
    this.#random = parts.machine.random.fork("work");
  }

  /**
   * Time when the manager began to close. Commands that a node runs later no longer serve a request
   * of the user. Undefined before that time.
   */
  get closingSinceMs(): number | undefined {
    return this.#closingSinceMs;
  }

  /** True if the manager is closed and all loops have ended, or if the process crashed. */
  get isDone(): boolean {
    return (this.#isClosed && this.#loops === 0) || this.machine.hasCrashed;
  }

  start(): void {
    for (let loop = 0; loop < this.#parts.plan.loops; loop += 1) {
      this.#loops += 1;
      this.machine.enter("timer", () => void this.#loop(this.#random.fork(`loop-${loop}`)));
    }
  }

  stop(): void {
    this.#isStopping = true;
  }

  /** Closes the manager while calls are under way. */
  quit(): void {
    this.#isStopping = true;
    this.machine.enter("timer", () => void this.#close());
  }

  /**
   * Removes the time limit of all later waits for locks. A client that never gets a lock is then
   * reported as `no-progress`.
   */
  beginPatience(): void {
    this.#isPatient = true;
  }

  async #loop(random: SeededRandom): Promise<void> {
    const { plan, witness } = this.#parts;
    while (!this.#isStopping) {
      await this.machine.sleep(random.exponential(plan.thinkMs));
      if (this.#isStopping) break;
      try {
        await this.#once(random);
      } catch (error) {
        if (!isExpected(error)) {
          witness.report("unexpected-error", `${this.machine.name}: ${String(error)}`);
        }
      }
    }
    this.#loops -= 1;
    if (this.#loops === 0) await this.#close();
  }

  async #close(): Promise<void> {
    const { locks, promises, plan, witness, recording } = this.#parts;
    const { machine } = this;
    if (this.#closingSinceMs !== undefined) return;
    this.#closingSinceMs = witness.closing(machine);
    recording.unclaimed.report(witness, this.#closingSinceMs);
    await promises.watch(machine, "close", promises.closeMs(longestOf(plan)), locks.close());
    this.#isClosed = true;
  }

  async #once(random: SeededRandom): Promise<void> {
    const { plan, locks, promises } = this.#parts;
    const resources = this.#resources(random);
    const { minRetryMs, maxRetryMs } = plan;
    const ttlMs = lifeOf(plan, random);
    const drawnMs = random.chance(0.2) ? 0 : Math.round(random.exponential(plan.waitMs));
    const waitMs = this.#isPatient && drawnMs > 0 ? Infinity : drawnMs;
    const wait = waitMs === Infinity ? ("forever" as const) : waitMs;
    const renew = random.chance(plan.renewChance);
    const retry = { minDelay: minRetryMs, maxDelay: maxRetryMs };
    // `maxHold` ends leases that are renewed and never released.
    const maxHold = Math.round(plan.ttlMs * random.between(1, 8));
    const common = { ttl: ttlMs, renew, retry, maxHold, ...labelOf(plan, random) };
    const boundMs = promises.acquireMs(ttlMs, waitMs);
    const style = random.fraction();
    if (style < 0.2) {
      const call = locks.tryAcquire(resources, common);
      const lease = await this.#watch("tryAcquire", promises.acquireMs(ttlMs, 0), call);
      if (lease !== undefined) await this.#hold(random, lease);
    } else if (style < 0.45) {
      await this.#use(random, resources, { ...common, wait }, waitMs);
    } else {
      const signal = random.chance(plan.abortChance)
        ? this.#abortLater(random, drawnMs)
        : this.#abortAtGrant(random);
      const options = { ...common, wait, ...(signal === undefined ? {} : { signal }) };
      const call = locks.acquire(resources, options);
      signal?.addEventListener("abort", () => void this.#watchAborted(call));
      const lease = await this.#watch("acquire", boundMs, call);
      await this.#hold(random, lease);
    }
    if (random.chance(0.05)) await this.#look(random);
  }

  #use(
    random: SeededRandom,
    resources: string | string[],
    options: LockOptions & { readonly ttl: number },
    waitMs: number,
  ): Promise<void> {
    const { plan, locks, promises, witness } = this.#parts;
    let [workedMs, overMs] = [0, 0];
    const call = locks.using(resources, options, async (lease) => {
      const startedMs = awakeMs(this.machine);
      this.#handed(lease);
      try {
        await this.#work(random, lease);
      } finally {
        overMs = witness.overAfterWork(lease);
        witness.releasing(lease);
        workedMs = awakeMs(this.machine) - startedMs;
      }
    });
    void call.then(
      () => witness.succeeded(this.machine, overMs),
      () => undefined,
    );
    const boundMs = promises.usingMs(options.ttl, waitMs, longestOf(plan));
    return promises.watch(this.machine, "using", boundMs, call, () => workedMs);
  }

  async #look(random: SeededRandom): Promise<void> {
    const { locks, promises, plan } = this.#parts;
    // `nodes` and `inspect` wait for a reply as long as an acquire with the default TTL.
    const boundMs = promises.sweepMs + promises.roundMs(10_000);
    if (random.chance(0.5)) await this.#watch("nodes", boundMs, locks.nodes());
    else await this.#watch("inspect", boundMs, locks.inspect(random.pick(plan.resources)));
  }

  /** Works with a lease of `acquire` or `tryAcquire`, then releases or abandons the lease. */
  async #hold(random: SeededRandom, lease: Lease): Promise<void> {
    const { plan, promises, witness } = this.#parts;
    this.#handed(lease);
    try {
      await this.#work(random, lease);
    } finally {
      if (random.chance(plan.abandonChance)) witness.abandoned(lease);
      else {
        witness.releasing(lease);
        await this.#watch("release", promises.roundMs(longestOf(plan)), lease.release());
      }
    }
  }

  #handed(lease: Lease): void {
    const { recording, witness, onTenure } = this.#parts;
    const record = recording.byResources.get(lease.resources);
    if (record === undefined) throw new Error("a lease that no attempt was granted");
    recording.unclaimed.onHanded(record);
    witness.acquired(this.machine, lease, record);
    onTenure();
  }

  async #work(random: SeededRandom, lease: Lease): Promise<void> {
    const { plan, promises } = this.#parts;
    const ttlMs = longestOf(plan);
    for (let step = random.integer(1, 3); step > 0; step -= 1) {
      await this.machine.sleep(random.exponential(plan.holdMs));
      if (random.chance(plan.extendChance)) {
        await this.#watch("extend", promises.extendMs(ttlMs), extended(lease, plan, random));
      }
      if (random.chance(plan.proveChance)) {
        await this.#watch("prove", promises.roundMs(ttlMs), lease.prove());
      }
      for (const resource of lease.resources) await this.#addOne(random, lease, resource);
    }
  }

  /**
   * Reads a register, pauses, and writes the next number. If another client holds the lock as well,
   * one of the two updates is lost, which the register counts.
   */
  async #addOne(random: SeededRandom, lease: Lease, resource: string): Promise<void> {
    const { storage, fencing, plan } = this.#parts;
    const plain = storage.plain(resource);
    const fenced = storage.fenced(resource);
    const fence = fencing ? lease.fence : 0n;
    const read = await storage.request(this.machine, () => ({
      plain: plain.read(fence) ?? 0,
      fenced: fencing ? fenced.read(fence) : undefined,
    }));
    await this.machine.sleep(random.exponential(plan.holdMs / 4));
    lease.assertHeld();
    await storage.request(this.machine, () => {
      plain.write(fence, read.plain);
      if (read.fenced !== undefined) fenced.write(fence, read.fenced);
    });
  }

  #resources(random: SeededRandom): string | string[] {
    const { resources, severalChance } = this.#parts.plan;
    const first = random.pick(resources);
    if (!random.chance(severalChance)) return first;
    return [...new Set([first, random.pick(resources)])];
  }

  #abortLater(random: SeededRandom, waitMs: number): AbortSignal {
    const controller = new AbortController();
    const { clock } = this.machine.runtime;
    clock.setTimer(random.between(0, waitMs), true, () => controller.abort(new Aborted()));
    return controller.signal;
  }

  /** Returns a signal that aborts in the turn of the next grant, a few microtasks after it. */
  #abortAtGrant(random: SeededRandom): AbortSignal | undefined {
    const { abortAtGrantChance = 0 } = this.#parts.plan;
    if (abortAtGrantChance === 0 || !random.chance(abortAtGrantChance)) return undefined;
    const controller = new AbortController();
    const abort = (left: number): void => {
      if (left > 0) queueMicrotask(() => abort(left - 1));
      else controller.abort(new Aborted());
    };
    const microtasks = random.integer(0, 8);
    this.#parts.recording.atNextGrant(() => abort(microtasks));
    return controller.signal;
  }

  /** Called when the signal of `call` aborts. Checks that the call has settled or does so now. */
  async #watchAborted(call: Promise<unknown>): Promise<void> {
    const { cancelMs } = this.#parts.promises;
    await this.#watch("an aborted acquire", cancelMs, call).catch(() => undefined);
  }

  #watch<Result>(what: string, boundMs: number, call: Promise<Result>): Promise<Result> {
    // A call of a manager that has begun to close has no limit, but must settle.
    const asideMs = (): number => (this.#closingSinceMs === undefined ? 0 : Infinity);
    return this.#parts.promises.watch(this.machine, what, boundMs, call, asideMs);
  }
}

class Aborted extends Error {}

/** Extends the lease by its own TTL or by a random TTL of the plan. */
function extended(lease: Lease, { lives }: WorkPlan, random: SeededRandom): Promise<void> {
  return lives === undefined || random.chance(0.2)
    ? lease.extend()
    : lease.extend(random.pick(lives));
}

/**
 * True if a correct library may throw this error: contention, too few votes, a lost lease, or a
 * server that was replaced while a lease was extended or proven. Any other error is a bug.
 */
function isExpected(error: unknown): boolean {
  if (error instanceof Aborted) return true;
  if (error instanceof ReplicationError) return error.fault === "replaced";
  return (["ACQUIRE_TIMEOUT", "QUORUM", "LEASE_LOST", "LEASE_RELEASED", "CLOSED"] as const).some(
    (code) => isHoldfastError(error, code),
  );
}
