import type { Lease } from "../core/lease/lease.ts";
import type { ConfirmationRecord, GrantRecord, TenureRecord, Violation } from "./history.ts";
import type { AttemptRecord } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { Scene } from "./scene.ts";
import { earlyLoss, leftMs } from "./validity.ts";

/** A lease from the moment the user received it, and until when the user could rely on it. */
interface Tenure {
  readonly machine: SimulatedProcess;
  readonly lease: Lease;
  readonly record: AttemptRecord;
  readonly acquiredMs: number;
  trustedUntilMs: number;
  /** Time since when the wall clock has shown without interruption that the validity is over. */
  wallOverSinceMs: number | undefined;
  isOver: boolean;
}

/**
 * Limit for the time until the library notices an end of the validity that only the wall clock
 * shows. The library reads the wall clock every second.
 */
const clockLookMs = 1_100;

/** Watches every lease of a world through the public `Lease` interface. Records violations. */
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
    this.#scene.add("world", "violation", `${rule}: ${text}`);
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

  /** Called when the user drops a lease without a release. Its keys on the nodes then expire. */
  abandoned(lease: Lease): void {
    const tenure = this.#tenures.find((each) => each.lease === lease);
    if (tenure !== undefined) this.#abandoned.add(tenure.record.owner);
  }

  /** True if the user dropped a lease that was then lost before its manager was closed. */
  wasAbandoned(owner: string): boolean {
    return this.#abandoned.has(owner) && this.#lost.has(owner);
  }

  /**
   * Called when the lock manager of a process starts to close. Returns the world's current time.
   */
  closing(machine: SimulatedProcess): number {
    this.#closing.add(machine);
    return this.#scene.nowMs;
  }

  /**
   * Called when the work of `using` has ended. Returns for how many ms the validity has been over
   * by the clocks of the process (negative while valid). If it is over, `using` must not resolve.
   */
  overAfterWork(lease: Lease): number {
    const tenure = this.#tenures.find((each) => each.lease === lease);
    return tenure === undefined ? 0 : -leftMs(tenure.machine, tenure.record);
  }

  /** Called when `using` resolved. `overMs` is the result of `overAfterWork`. */
  succeeded(machine: SimulatedProcess, overMs: number): void {
    if (overMs <= 0) return;
    const text = `using of ${machine.name} resolved, ${overMs.toFixed(3)} ms after the lease`;
    this.report("unreported-loss", text);
  }

  /** Called when the user releases a lease. From now on the lease must not report `held`. */
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
   * Called when a reply proved to a process that a node's clock was set forward. Keys on that node
   * may have expired early. Each lease of the process must still have a quorum of valid votes.
   */
  noticeStep(machine: SimulatedProcess): void {
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

  /** Called when the wall clock of a process was stepped, so that leases may be over. */
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
    const what = `${machine.name} still trusts ${record.resources.join("+")}`;
    this.report("trust-beyond-validity", `${what}, ${overMs.toFixed(3)} ms after its validity`);
    tenure.isOver = true;
  }

  #mustRestOnQuorum(tenure: Tenure): void {
    const { machine, lease, record } = tenure;
    if (tenure.isOver || machine.hasCrashed || machine.isPaused) return;
    if (this.#restsOnQuorum(record)) return;
    this.#scene.enter();
    const { state } = lease;
    if (state !== "held" && state !== "doubtful") return;
    const what = `${machine.name} trusts ${record.resources.join("+")}`;
    this.report("too-few-votes", `${what}, for which too few nodes have confirmed it`);
    tenure.isOver = true;
  }

  /** Reports a lease that was lost or released and now reports `held` again. */
  #mustStayOver({ machine, lease, record }: Tenure): void {
    if (machine.hasCrashed || machine.isPaused) return;
    this.#scene.enter();
    const { state } = lease;
    if (state !== "held" && state !== "doubtful") return;
    const what = `${machine.name} trusts ${record.resources.join("+")} again`;
    this.report("trust-beyond-validity", `${what}, after it was over`);
  }

  /**
   * Called when the lease's signal aborts. If the validity is not over, the lease was `held` until
   * now.
   */
  #onSignal(tenure: Tenure): void {
    const early = earlyLoss(tenure.machine, tenure.record, tenure.lease, this.#scene.nowMs);
    if (early !== undefined) this.report("wrong-reason", early);
    if (!tenure.isOver && leftMs(tenure.machine, tenure.record) >= 0)
      tenure.trustedUntilMs = this.#scene.nowMs;
    if (!this.#closing.has(tenure.machine)) this.#lost.add(tenure.record.owner);
    tenure.isOver = true;
  }

  /** Schedules two checks: when the monotonic clock and when the wall clock ends the validity. */
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
    const what = `${machine.name} received no signal of the end of ${record.resources.join("+")}`;
    this.report("late-signal", `${what}, ${overMs.toFixed(3)} ms over`);
    tenure.isOver = true;
  }

  /** Returns for how many more ms the signal may be missing although the validity is over. */
  #graceMs({ machine, wallOverSinceMs }: Tenure, byMonotonic: boolean): number {
    // A paused process cannot abort a signal. After a pause it gets some time for its due timers.
    // The library reads the wall clock by timers. They count monotonic time, which a suspend stops.
    if (machine.isPaused) return 5;
    if (byMonotonic) return 3 - machine.runsForMs();
    const seenForMs = this.#scene.nowMs - (wallOverSinceMs ?? this.#scene.nowMs);
    return clockLookMs - Math.min(seenForMs, machine.runsForMs());
  }
}
