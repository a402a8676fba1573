import type { CancelTimer, Clock, Instant, SteadyClock } from "./ports.ts";
import { steadyClock } from "./steady-clock.ts";
import { TaskHeap } from "./task-heap.ts";
import { clockStepMs, now } from "./validity.ts";

/** Something to be run at a moment of the monotonic clock. Belongs to one scheduler at a time. */
export interface Task {
  dueMs: number;
  /** Place in the heap; -1 while not scheduled. Only the scheduler writes it. */
  heapIndex: number;
  /** Whether waiting for it keeps the process running. */
  readonly keepAlive: boolean;
  /** Whether it waits for an answer, and is mostly cancelled long before it is due. */
  readonly isBrief?: boolean;
  /** How much sooner it may run, where the timer fires for another: to go together with it. */
  readonly earlyMs?: number;
  /** `moment` is from when those that are due began to run, or hardly later. */
  run(moment: Instant): void;
}

/**
 * The machine may sleep while the monotonic clock stands still, so with anything scheduled we look
 * at the clocks at least this often.
 */
const sleepMsMax = 1_000;

/** Of many that are due together, so many share one look at the clocks. */
const lookEvery = 32;

/**
 * One timer for everything that waits: renewals, deadlines, node timeouts and retry pauses. A
 * second one does nothing but keep the process running while a task asks for it: if the first had
 * to be set anew whenever that changes, a busy process would put off what is due again and again.
 */
export class Scheduler {
  readonly clock: SteadyClock;
  /** Apart from the others, of which there may be very many: what comes and goes at once. */
  readonly #brief = new TaskHeap();
  readonly #lasting = new TaskHeap();
  #keepAliveCount = 0;
  #armedForMs = Infinity;
  #cancel: CancelTimer | undefined;
  #letExit: CancelTimer | undefined;
  /** Whether that one keeps the process running by now. */
  #keeps = false;
  #running = false;
  /** How much the wall clock had gained by the last step. */
  #gainedMs: number;
  #stepped: (() => void) | undefined;

  constructor(clock: Clock) {
    this.clock = steadyClock(clock);
    this.#gainedMs = gainedMs(now(this.clock));
  }

  /** `listener` runs when the wall clock has gained a step, before anything that is due. */
  onClockStep(listener: () => void): void {
    this.#stepped = listener;
  }

  get size(): number {
    return this.#brief.size + this.#lasting.size;
  }

  /** All that is scheduled for longer, in no order. */
  get lasting(): readonly Task[] {
    return this.#lasting.tasks;
  }

  /** How long the armed timer should have fired by now: the event loop is blocked since then. */
  get overdueMs(): number {
    if (this.#cancel === undefined) return 0;
    return Math.max(0, this.clock.monotonicMs() - this.#armedForMs);
  }

  /** Puts `task` at `dueMs`, moving it if it was scheduled already. */
  schedule(task: Task, dueMs: number): void {
    const isNew = task.heapIndex < 0;
    task.dueMs = dueMs;
    if (isNew && task.keepAlive) this.#keepAliveCount += 1;
    if (isNew) this.#heapOf(task).add(task);
    else this.#heapOf(task).move(task);
    if (!this.#running) this.#arm();
  }

  cancel(task: Task): void {
    if (task.heapIndex < 0) return;
    if (task.keepAlive) this.#keepAliveCount -= 1;
    this.#heapOf(task).remove(task);
    // An armed timer that finds nothing due costs less than arming anew on every cancel.
    if (this.size === 0 && this.#cancel?.keepAlive === undefined) this.#disarm();
    if (!this.#running) this.#keepProcess();
  }

  /** Runs `callback` once at `dueMs`; the returned task can be cancelled. */
  at(dueMs: number, keepAlive: boolean, callback: () => void): Task {
    const task: Task = { dueMs, heapIndex: -1, keepAlive, run: callback };
    this.schedule(task, dueMs);
    return task;
  }

  /** Nobody needs it any more: no timer is left behind, not even one that finds nothing to do. */
  end(): void {
    this.#disarm();
    this.#letExit?.();
    this.#letExit = undefined;
    this.#keeps = false;
  }

  #heapOf({ isBrief }: Task): TaskHeap {
    return isBrief === true ? this.#brief : this.#lasting;
  }

  #first(): Task | undefined {
    const brief = this.#brief.first;
    const lasting = this.#lasting.first;
    if (brief === undefined || lasting === undefined) return brief ?? lasting;
    return brief.dueMs < lasting.dueMs ? brief : lasting;
  }

  #arm(): void {
    this.#keepProcess();
    const first = this.#first();
    if (first === undefined) return;
    if (this.#armedForMs <= first.dueMs) return;
    const nowMs = this.clock.monotonicMs();
    const dueMs = Math.min(first.dueMs, nowMs + sleepMsMax);
    // One that should have fired by now is about to: a new one could only fire later.
    if (this.#armedForMs <= Math.max(dueMs, nowMs)) return;
    this.#disarm();
    this.#armedForMs = dueMs;
    this.#cancel = this.clock.setTimer(Math.max(0, dueMs - nowMs), false, () => {
      this.#cancel = undefined;
      this.#armedForMs = Infinity;
      this.#runDue();
    });
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedForMs = Infinity;
  }

  /** A timer that can be told to let the process go is told so, and kept for the next time. */
  #keepProcess(): void {
    const isWanted = this.#keepAliveCount > 0;
    if (this.#keeps === isWanted) return;
    this.#keeps = isWanted;
    const timer = this.#letExit;
    if (timer?.keepAlive !== undefined) return timer.keepAlive(isWanted);
    timer?.();
    this.#letExit = isWanted
      ? this.clock.setTimer(sleepMsMax, true, () => {
          this.#letExit = undefined;
          this.#keeps = false;
          this.#keepProcess();
        })
      : undefined;
  }

  #runDue(): void {
    this.#running = true;
    try {
      let moment = this.#watchClocks();
      // A task may schedule itself again for now: the limit keeps one turn finite.
      for (let left = this.size; left > 0; left -= 1) {
        const first = this.#first();
        if (first === undefined) break;
        const dueMs = first.dueMs - (first.earlyMs ?? 0);
        // Those that ran before it took their time, too.
        if (dueMs > moment.monotonicMs || left % lookEvery === 0) moment = now(this.clock);
        if (dueMs > moment.monotonicMs) break;
        this.cancel(first);
        first.run(moment);
      }
    } finally {
      this.#running = false;
      this.#arm();
    }
  }

  #watchClocks(): Instant {
    const moment = now(this.clock);
    const gained = gainedMs(moment);
    // Measured from the last step and not from the last look, so that small ones add up.
    if (gained - this.#gainedMs < clockStepMs) return moment;
    this.#gainedMs = gained;
    this.#stepped?.();
    return now(this.clock);
  }
}

function gainedMs({ monotonicMs, steadyMs }: Instant): number {
  return steadyMs - monotonicMs;
}
