import type { Lease } from "../core/lease/lease.ts";
import type { ConfirmationRecord, GrantRecord, TenureRecord, Violation } from "./history.ts";
import type { AttemptRecord } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { Scene } from "./scene.ts";
import { earlyLoss, leftMs } from "./validity.ts";

/** State of a lease from the moment the user received it. */
interface Tenure {
  readonly machine: SimulatedProcess;
  readonly lease: Lease;
  readonly record: AttemptRecord;
  readonly acquiredMs: number;
  trustedUntilMs: number;
  /** Time since which the lease has been over by the wall clock without interruption. */
  wallOverSinceMs: number | undefined;
  isOver: boolean;
}

/**
 * Longest time until the library notices an end that only the wall clock shows: its scheduler reads
 * that clock every second.
 */
const clockLookMs = 1_100;

/** Watches every lease of a world through its public interface and records violations. */
export class Witness {
  readonly violations: Violation[] = [];
  readonly grants: GrantRecord[] = [];
  readonly confirmations: ConfirmationRecord[] = [];
  readonly #scene: Scene;
  readonly #restsOnQuorum: (record: AttemptRecord) => boolean;
  readonly #tenures: Tenure[] = [];
  readonly #byRecord = new Map<AttemptRecord, Tenure>();
  readonly #abandoned = new Set<string>();
  /** Owners of leases that were lost before their manager was closed. */
  readonly #lost = new Set<string>();
  readonly #closing = new Set<SimulatedProcess>();
  #active: Tenure[] = [];

  constructor(scene: Scene, restsOnQuorum: (record: AttemptRecord) => boolean) {
    this.#scene = scene;
    this.#restsOnQuorum = restsOnQuorum;
  }

  get tenures(): TenureRecord[] {
    return this.#tenures.flatMap(({ machine, record, acquiredMs, trustedUntilMs }) =>
      record.resources.map((resource) => ({
        client: machine.name,
        resource,
        fence: record.fence,
        startedMs: record.startedMs,
        acquiredMs,
        trustedUntilMs,
      })),
    );
  }

  report(rule: Violation["rule"], text: string): void {
    this.violations.push({ rule, atMs: this.#scene.nowMs, text });
    this.#scene.tell("world", "violation", `${rule}: ${text}`);
  }

  granted(record: AttemptRecord): void {
    const { machine, resources, startedMs, fence } = record;
    this.grants.push({
      client: machine.name,
      resources,
      startedMs,
      completedMs: this.#scene.nowMs,
      fence,
    });
  }

  /** Called when the user received a lease. Checks all leases on the same resources. */
  acquired(machine: SimulatedProcess, lease: Lease, record: AttemptRecord): void {
    const { nowMs } = this.#scene;
    const tenure: Tenure = {
      machine,
      lease,
      record,
      acquiredMs: nowMs,
      trustedUntilMs: nowMs,
      wallOverSinceMs: undefined,
      isOver: false,
    };
    this.#tenures.push(tenure);
    this.#byRecord.set(record, tenure);
    this.#active = this.#active.filter((each) => !each.isOver && !each.machine.hasCrashed);
    this.#active.push(tenure);
    lease.signal.addEventListener("abort", () => this.#onSignal(tenure));
    for (const each of this.#active) {
      if (each.record.resources.some((name) => record.resources.includes(name))) this.#ask(each);
    }
    this.#expectSignal(tenure);
    this.#mustRestOnQuorum(tenure);
  }

  /** Called when the user drops a lease without a release. Its keys stay until they expire. */
  abandoned(lease: Lease): void {
    const tenure = this.#tenures.find((each) => each.lease === lease);
    if (tenure !== undefined) this.#abandoned.add(tenure.record.owner);
  }

  /** True if the user dropped the lease and it was lost before the manager could release it. */
  wasAbandoned(owner: string): boolean {
    return this.#abandoned.has(owner) && this.#lost.has(owner);
  }

  /**
   * Called when the manager starts to close and releases what is held. Returns the world's time.
   */
  closing(machine: SimulatedProcess): number {
    this.#closing.add(machine);
    return this.#scene.nowMs;
  }

  /**
   * Called when the work of `using` has ended. Returns for how long the lease had been over then,
   * by the clocks of its process: `using` must not report success for such work.
   */
  overAfterWork(lease: Lease): number {
    const tenure = this.#tenures.find((each) => each.lease === lease);
    return tenure === undefined ? 0 : -leftMs(tenure.machine, tenure.record);
  }

  /** Called when `using` resolved after its work had ended. */
  succeeded(machine: SimulatedProcess, overMs: number): void {
    if (overMs <= 0) return;
    const text = `using of ${machine.name} resolved, ${overMs.toFixed(3)} ms after the lease`;
    this.report("unreported-loss", text);
  }

  /** Called when the user releases a lease; from now on it must not report `held`. */
  releasing(lease: Lease): void {
    const tenure = this.#active.find((each) => each.lease === lease);
    if (tenure === undefined) return;
    this.#ask(tenure);
    tenure.isOver = true;
    this.#scene.after(0, () => this.#mustStayOver(tenure));
  }

  confirmed(record: AttemptRecord, startedMs: number): void {
    const { machine, resources, fence, completedMs = startedMs } = record;
    const client = machine.name;
    this.confirmations.push({ client, resources, fence, grantedMs: completedMs, startedMs });
    const tenure = this.#byRecord.get(record);
    if (tenure === undefined) return;
    if (tenure.isOver) this.#scene.after(0, () => this.#mustStayOver(tenure));
    else this.#expectSignal(tenure);
    this.#scene.after(0, () => this.#mustRestOnQuorum(tenure));
  }

  /**
   * Called when a process received proof that a node's clock was set forward. Keys on that node may
   * be gone, so each lease of the process must still have a quorum.
   */
  heardOfStep(machine: SimulatedProcess): void {
    this.#scene.after(0, () => {
      for (const tenure of this.#active) {
        if (tenure.machine === machine) this.#mustRestOnQuorum(tenure);
      }
    });
  }

  /** Reads the state of all leases of a process, as a user could do now. */
  askAll(machine: SimulatedProcess): void {
    for (const tenure of this.#active) if (tenure.machine === machine) this.#ask(tenure);
  }

  /** Called when a wall clock was stepped: a lease may now be over, or no longer be over. */
  onClientStep(machine: SimulatedProcess): void {
    for (const tenure of this.#active) {
      if (tenure.machine === machine) this.#mustBeSignalled(tenure);
    }
  }

  #ask(tenure: Tenure): void {
    const { machine, lease, record } = tenure;
    if (tenure.isOver || machine.hasCrashed || machine.isPaused) return;
    this.#scene.enter();
    const { state } = lease;
    if (state !== "held" && state !== "doubtful") {
      tenure.isOver = true;
      return;
    }
    tenure.trustedUntilMs = this.#scene.nowMs;
    const overMs = -leftMs(tenure.machine, tenure.record);
    if (overMs <= 0) return;
    const told = `${machine.name} still trusts ${record.resources.join("+")}`;
    this.report("trust-beyond-validity", `${told}, ${overMs.toFixed(3)} ms after its validity`);
    tenure.isOver = true;
  }

  #mustRestOnQuorum(tenure: Tenure): void {
    const { machine, lease, record } = tenure;
    if (tenure.isOver || machine.hasCrashed || machine.isPaused) return;
    if (this.#restsOnQuorum(record)) return;
    this.#scene.enter();
    const { state } = lease;
    if (state !== "held" && state !== "doubtful") return;
    const told = `${machine.name} trusts ${record.resources.join("+")}`;
    this.report("too-few-votes", `${told}, for which too few nodes have given their word`);
    tenure.isOver = true;
  }

  /** Reports a lease that was lost or released and now reports `held` again. */
  #mustStayOver({ machine, lease, record }: Tenure): void {
    if (machine.hasCrashed || machine.isPaused) return;
    this.#scene.enter();
    const { state } = lease;
    if (state !== "held" && state !== "doubtful") return;
    const told = `${machine.name} trusts ${record.resources.join("+")} again`;
    this.report("trust-beyond-validity", `${told}, after it was over`);
  }

  /**
   * Called when the lease's signal aborts. If the validity was not over, it was `held` until now.
   */
  #onSignal(tenure: Tenure): void {
    const early = earlyLoss(tenure.machine, tenure.record, tenure.lease, this.#scene.nowMs);
    if (early !== undefined) this.report("wrong-reason", early);
    if (!tenure.isOver && leftMs(tenure.machine, tenure.record) >= 0)
      tenure.trustedUntilMs = this.#scene.nowMs;
    if (!this.#closing.has(tenure.machine)) this.#lost.add(tenure.record.owner);
    tenure.isOver = true;
  }

  /** Schedules a check for the end of the validity by each clock of the process. */
  #expectSignal(tenure: Tenure): void {
    const { machine, record } = tenure;
    const { nowMs } = this.#scene;
    const monotonicMs = record.validUntilMonotonicMs;
    const byMonotonic = machine.monotonic.realUntil(monotonicMs, nowMs);
    this.#scene.after(byMonotonic, () => {
      if (record.validUntilMonotonicMs === monotonicMs) this.#mustBeSignalled(tenure);
    });
    const wallMs = record.validUntilWallMs;
    const byWall = machine.wall.realUntil(wallMs, nowMs);
    this.#scene.after(byWall, () => {
      if (record.validUntilWallMs === wallMs) this.#mustBeSignalled(tenure);
    });
  }

  #mustBeSignalled(tenure: Tenure): void {
    const { machine, record } = tenure;
    if (tenure.isOver || machine.hasCrashed) return;
    const { nowMs } = this.#scene;
    const byMonotonicMs = machine.monotonicMs() - record.validUntilMonotonicMs;
    const byWallMs = machine.wall.at(nowMs) - record.validUntilWallMs;
    if (byWallMs < -0.001) tenure.wallOverSinceMs = undefined;
    else tenure.wallOverSinceMs ??= nowMs;
    // The clock was held or set back meanwhile, so the validity is not over yet.
    const overMs = Math.max(byMonotonicMs, byWallMs);
    if (overMs < -0.001) {
      this.#scene.after(-overMs, () => this.#mustBeSignalled(tenure));
      return;
    }
    const waitMs = this.#graceMs(tenure, byMonotonicMs >= -0.001);
    if (waitMs > 0) {
      this.#scene.after(waitMs, () => this.#mustBeSignalled(tenure));
      return;
    }
    const told = `${machine.name} was not told of the end of ${record.resources.join("+")}`;
    this.report("late-signal", `${told}, ${overMs.toFixed(3)} ms over`);
    tenure.isOver = true;
  }

  /** Returns how much longer the signal may take although the validity is over. */
  #graceMs({ machine, wallOverSinceMs }: Tenure, byMonotonic: boolean): number {
    // A paused process cannot signal. After it resumes, its timers run first. The timers that check
    // the wall clock count monotonic time, which may have been held.
    if (machine.isPaused) return 5;
    if (byMonotonic) return 3 - machine.runsForMs();
    const seenForMs = this.#scene.nowMs - (wallOverSinceMs ?? this.#scene.nowMs);
    return clockLookMs - Math.min(seenForMs, machine.runsForMs());
  }
}
