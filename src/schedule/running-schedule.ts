import { isHoldfastError } from "../core/errors.ts";
import type { Lease } from "../core/lease/lease.ts";
import { Listeners } from "../core/listeners.ts";
import { messageOf } from "../core/report/loggable.ts";
import { Pause } from "../core/time/pause.ts";
import { begunValue, overValue, planOf } from "./plan.ts";
import type { Due, MissedTick } from "./plan.ts";
import type { Schedule, ScheduleCall } from "./schedule-call.ts";
import type { ScheduleEventName, ScheduleEvents, ScheduleListener } from "./schedule-events.ts";

const eventNames: readonly ScheduleEventName[] = [
  "tick-begun",
  "tick-done",
  "tick-failed",
  "tick-missed",
  "tick-skipped",
  "schedule-failed",
];

/** Longest pause between two looks at the clock, which can be set. */
const sleepMsMax = 60_000;
const retryMsMin = 1_000;
const retryMsMax = 30_000;
/** Limit for ticks that came during a run and are reported one by one. */
const skippedMax = 100;
/** Time that is added to `#aheadMs` each time that the ledger refuses a tick as too early. */
const aheadStepMs = 1_000;
const finishTries = 3;

/**
 * Problem: each process has the timer, and each tick must be run by one of them, also if clocks
 * differ, leases are lost and processes die.
 * Idea: the ledger has one number, which says what was begun and only grows. A process acquires the
 * lease, reads the number, decides what is due, and raises the number before it runs the work. A
 * raise that is refused means that the tick was begun elsewhere.
 * Limit: a tick whose process dies between the raise and the end of the work is not run to its end.
 */
export class RunningSchedule implements Schedule {
  readonly name: string;
  readonly #call: ScheduleCall;
  readonly #listeners: Listeners<ScheduleEvents>;
  readonly #pause: Pause;
  readonly #loop: Promise<void>;
  #isStopping = false;
  #nextMs: number | undefined;
  /** Time by which this process's clock is ahead of that of the ledger, as far as is known. */
  #aheadMs = 0;

  constructor(call: ScheduleCall) {
    const { name, parts, signal } = call;
    this.name = name;
    this.#call = call;
    this.#listeners = new Listeners(parts.runtime.diagnostics, eventNames);
    this.#pause = new Pause(parts.runtime.clock);
    const stop = (): void => void this.stop();
    const removeOnClose = parts.onClose(stop);
    signal?.addEventListener("abort", stop);
    if (signal?.aborted === true) this.#isStopping = true;
    this.#loop = this.#followTicks()
      .catch((error: unknown) => this.#emitFailed(error, undefined))
      .finally(() => {
        this.#nextMs = undefined;
        removeOnClose();
        signal?.removeEventListener("abort", stop);
      });
  }

  get next(): Date | undefined {
    return this.#nextMs === undefined ? undefined : new Date(this.#nextMs);
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    this.#pause.end();
    return this.#loop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  on<Name extends ScheduleEventName>(name: Name, listener: ScheduleListener<Name>): () => void {
    return this.#listeners.on(name, listener);
  }

  get #nowMs(): number {
    return Math.floor(this.#call.parts.runtime.clock.wallMs()) - this.#aheadMs;
  }

  async #followTicks(): Promise<void> {
    const { ticks, policy } = this.#call;
    // The caller of `schedule` adds its listeners first.
    await Promise.resolve();
    const beganMs = this.#nowMs;
    this.#nextMs = ticks.next(beganMs);
    const [last = beganMs] = ticks.between(beganMs - policy.withinMs, beganMs, 1);
    await this.#look(policy.immediately ? last : undefined);
    let afterMs = beganMs;
    while (!this.#isStopping) {
      const nextMs = ticks.next(afterMs);
      if (nextMs === undefined) return;
      this.#nextMs = nextMs;
      while (!this.#isStopping && this.#nowMs < nextMs) {
        await this.#pause.sleep(Math.min(nextMs - this.#nowMs, sleepMsMax));
      }
      await this.#look(nextMs);
      afterMs = Math.max(nextMs, this.#nowMs);
    }
  }

  /** Looks at what is due until nothing is left. `firstMs` is a tick to run if none ever was. */
  async #look(firstMs: number | undefined): Promise<void> {
    const { ticks } = this.#call;
    const untilMs = ticks.next(this.#nowMs) ?? Infinity;
    let delayMs = retryMsMin;
    while (!this.#isStopping) {
      let againMs: number | undefined;
      try {
        againMs = await this.#tryOnce(firstMs, delayMs);
      } catch (error) {
        if (this.#isStopping || isHoldfastError(error, "CLOSED")) return;
        againMs = this.#nowMs + delayMs < untilMs ? delayMs : undefined;
        this.#emitFailed(error, againMs);
      }
      // The next tick looks again at what is left.
      if (againMs === undefined || this.#nowMs + againMs >= untilMs) return;
      // An end of the pause that came before the pause has no effect on it.
      if (this.#isStopping) return;
      await this.#pause.sleep(againMs);
      delayMs = Math.min(retryMsMax, delayMs * 2);
    }
  }

  /** Returns the time until the next try; undefined if there is nothing to wait for. */
  async #tryOnce(firstMs: number | undefined, delayMs: number): Promise<number | undefined> {
    const { locks, lock, policy } = this.#call;
    const lease = await locks.tryAcquire(this.name, lock);
    // The process that has the lease may die, and its tick may be begun again.
    if (lease === undefined) return policy.tries > 1 ? retryMsMax : undefined;
    try {
      return await this.#runDue(lease, firstMs, delayMs);
    } finally {
      await lease.release();
    }
  }

  async #runDue(
    lease: Lease,
    firstMs: number | undefined,
    delayMs: number,
  ): Promise<number | undefined> {
    const { ledger, ticks, policy, name } = this.#call;
    for (;;) {
      const last = await ledger.last(name);
      if (last === undefined && firstMs === undefined) return undefined;
      const first = { due: [{ tickMs: firstMs ?? 0, attempt: 1 }], missed: [] };
      const plan = last === undefined ? first : planOf(last, this.#nowMs, ticks, policy);
      let overMs = -Infinity;
      for (const due of plan.due) {
        if (this.#isStopping) return undefined;
        const outcome = await this.#run(lease, due, delayMs);
        if (outcome === "elsewhere") return undefined;
        if (outcome === "early") return delayMs;
        overMs = due.tickMs;
        if (outcome === "over") continue;
        await this.#reportMissed(lease, plan.missed, overMs);
        return delayMs;
      }
      await this.#reportMissed(lease, plan.missed, overMs);
      if (overMs === -Infinity || this.#isStopping) return undefined;
      const came = ticks.between(overMs, this.#nowMs, skippedMax);
      const latest = came.at(-1);
      if (latest === undefined) return undefined;
      if (policy.overlap === "after") continue;
      if ((await ledger.raise(name, overValue(latest), lease, latest)) === "raised") {
        for (const tickMs of came) {
          this.#listeners.emit("tick-skipped", { name, tick: new Date(tickMs) });
        }
      }
      return undefined;
    }
  }

  /** Runs one tick, if it can be begun here. */
  async #run(
    lease: Lease,
    { tickMs, attempt }: Due,
    delayMs: number,
  ): Promise<"over" | "again" | "early" | "elsewhere"> {
    const { ledger, policy, work, parts, name } = this.#call;
    lease.assertHeld();
    const raised = await ledger.raise(name, begunValue(tickMs, attempt), lease, tickMs);
    if (raised === "refused") return "elsewhere";
    if (raised === "early") {
      this.#aheadMs += aheadStepMs;
      return "early";
    }
    // The raise counts only within the validity of the lease.
    lease.assertHeld();
    const { fence, signal } = lease;
    const about = { name, tick: new Date(tickMs), attempt, fence };
    this.#listeners.emit("tick-begun", about);
    const { clock } = parts.runtime;
    const beganMs = clock.monotonicMs();
    try {
      await work({ tick: about.tick, attempt, lease, signal });
    } catch (error) {
      const elapsedMs = clock.monotonicMs() - beganMs;
      const retryInMs = attempt < policy.tries ? delayMs : undefined;
      const event = { ...about, elapsedMs, error, retryInMs };
      if (!this.#listeners.emit("tick-failed", event)) warn(name, error);
      if (retryInMs === undefined) await this.#finish(lease, tickMs);
      return retryInMs === undefined ? "over" : "again";
    }
    const elapsedMs = clock.monotonicMs() - beganMs;
    await this.#finish(lease, tickMs);
    this.#listeners.emit("tick-done", { ...about, elapsedMs });
    return "over";
  }

  /**
   * Stores that the tick is over. Tries again if the ledger fails. A tick that is over and not
   * stored counts as crashed.
   */
  async #finish(lease: Lease, tickMs: number): Promise<void> {
    const { ledger, name } = this.#call;
    for (let tries = 1; ; tries += 1) {
      try {
        await ledger.raise(name, overValue(tickMs), lease, tickMs);
        return;
      } catch (error) {
        if (tries >= finishTries || isHoldfastError(error, "CLOSED")) throw error;
        await this.#pause.sleep(retryMsMin);
      }
    }
  }

  /** Reports ticks that are not run any more, once: the number is past them first. */
  async #reportMissed(lease: Lease, missed: readonly MissedTick[], overMs: number): Promise<void> {
    if (missed.length === 0) return;
    const { ledger, name } = this.#call;
    const latest = Math.max(...missed.map(({ tickMs }) => tickMs));
    if (latest > overMs) {
      const raised = await ledger.raise(name, overValue(latest), lease, latest);
      if (raised !== "raised") return;
    }
    for (const { tickMs, reason } of missed) {
      this.#listeners.emit("tick-missed", { name, tick: new Date(tickMs), reason });
    }
  }

  #emitFailed(error: unknown, retryInMs: number | undefined): void {
    const event = { name: this.name, error, retryInMs };
    if (!this.#listeners.emit("schedule-failed", event)) warn(this.name, error);
  }
}

/** Reports an error that no listener received. */
function warn(name: string, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
  process.emitWarning(`the schedule "${name}" failed: ${text}`, "HoldfastWarning");
}
