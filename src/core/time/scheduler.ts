import type { CancelTimer, Clock, Instant, SteadyClock } from "../ports.ts";
import { clockStepMs, steadyClock } from "./instant.ts";

/**
 * Work that a scheduler runs at a time of the monotonic clock. Belongs to one scheduler at a time.
 */
export interface Task {
  dueMs: number;
  /** Index in the heap; -1 while not scheduled. Written by the scheduler only. */
  heapIndex: number;
  /** True if the process keeps running while the task is scheduled. */
  readonly keepAlive: boolean;
  /** True for the time limit of a request, which is usually cancelled long before it is due. */
  readonly isBrief?: boolean;
  /**
   * Longest time by which the task may run early, if the timer fires for another task. Both tasks
   * then send their requests in one round.
   */
  readonly earlyMs?: number;
  /**
   * Called when due. `moment` is the time at which the batch of due tasks began, or slightly later.
   */
  run(moment: Instant): void;
}

/** Runs the timed work of one manager, with one timer of the runtime for all of it. */
export interface Scheduler {
  readonly clock: SteadyClock;
  /** Runs `callback` once at `dueMs` (monotonic) or later. The returned task can be cancelled. */
  at(dueMs: number, keepAlive: boolean, callback: () => void): Task;
  /** Schedules `task` at `dueMs`. Moves a task that is already scheduled. */
  schedule(task: Task, dueMs: number): void;
  /** Cancels a scheduled task. Does nothing for a task that is not scheduled. */
  cancel(task: Task): void;
}

/** Longest time between two readings of the clocks, while anything is scheduled. */
const sleepMsMax = 1_000;

/** perf (renew): in a batch of due tasks, the clocks are read again only after so many tasks. */
const lookEvery = 32;

/**
 * Problem: a manager waits for very many times at once: renewals, ends of leases, time limits of
 * requests, retry pauses. A timer for each is expensive. And while the machine is suspended, timers
 * and the monotonic clock stand still.
 *
 * Idea: a heap of tasks, and one timer for the task that is due first. The timer fires at least
 * once a second and reads both clocks. A step of the wall clock is reported before due tasks run. A
 * second timer keeps the process running while a task needs that. If the first timer did that as
 * well, it would be set again at each change, and a busy process could postpone due tasks again and
 * again.
 *
 * Limits: tasks run late while the event loop is blocked, and up to a second late after a suspend.
 * So leases also check the clocks when their state is read.
 */
export class TimerScheduler implements Scheduler {
  readonly clock: SteadyClock;
  /**
   * perf: brief tasks are added and removed often. Their own small heap makes that cheap, even if
   * many leases are in the other heap.
   */
  readonly #brief = new TaskHeap();
  readonly #lasting = new TaskHeap();
  #keepAliveCount = 0;
  #armedForMs = Infinity;
  #cancel: CancelTimer | undefined;
  #letExit: CancelTimer | undefined;
  /** True if the timer behind `#letExit` keeps the process running now. */
  #keeps = false;
  #running = false;
  /** Gain of the wall clock on the monotonic clock when the last step was reported. */
  #gainedMs: number;
  #stepped: (() => void) | undefined;

  constructor(clock: Clock) {
    this.clock = steadyClock(clock);
    this.#gainedMs = gainedMs(this.clock.now());
  }

  /** Sets the listener for steps forward of the wall clock. The listener runs before due tasks. */
  onClockStep(listener: () => void): void {
    this.#stepped = listener;
  }

  get size(): number {
    return this.#brief.size + this.#lasting.size;
  }

  /** Returns the scheduled tasks that are not brief, in no order. */
  get lasting(): readonly Task[] {
    return this.#lasting.tasks;
  }

  /**
   * Returns by how much the armed timer is late, which is how long the event loop has been blocked.
   */
  get overdueMs(): number {
    if (this.#cancel === undefined) return 0;
    return Math.max(0, this.clock.monotonicMs() - this.#armedForMs);
  }

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
    // perf: keeps the timer armed. A timer that finds no due task costs less than a new timer.
    if (this.size === 0 && this.#cancel?.keepAlive === undefined) this.#disarm();
    if (!this.#running) this.#keepProcess();
  }

  at(dueMs: number, keepAlive: boolean, callback: () => void): Task {
    const task: Task = { dueMs, heapIndex: -1, keepAlive, run: callback };
    this.schedule(task, dueMs);
    return task;
  }

  /** Cancels both timers. Called when the manager is closed. */
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
    // Keeps an overdue timer, which is about to fire. A new timer could only fire later.
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

  /**
   * Keeps the process running, or lets it exit. Re-uses the timer if its `keepAlive` can change.
   */
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
      // A task may schedule itself again for the present moment. The limit keeps the loop finite.
      for (let left = this.size; left > 0; left -= 1) {
        const first = this.#first();
        if (first === undefined) break;
        const dueMs = first.dueMs - (first.earlyMs ?? 0);
        // Reads the clocks again, because the tasks that have already run took time.
        if (dueMs > moment.monotonicMs || left % lookEvery === 0) moment = this.clock.now();
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
    const moment = this.clock.now();
    const gained = gainedMs(moment);
    // The gain counts from the last reported step, not from the last reading, so that small gains
    // add up.
    if (gained - this.#gainedMs < clockStepMs) return moment;
    this.#gainedMs = gained;
    this.#stepped?.();
    return this.clock.now();
  }
}

function gainedMs({ monotonicMs, steadyMs }: Instant): number {
  return steadyMs - monotonicMs;
}

/** Binary heap of tasks. The first is the one that is due next. Each task stores its index. */
class TaskHeap {
  readonly #tasks: Task[] = [];

  get first(): Task | undefined {
    return this.#tasks[0];
  }

  get size(): number {
    return this.#tasks.length;
  }

  /** Returns all tasks, in no order. */
  get tasks(): readonly Task[] {
    return this.#tasks;
  }

  add(task: Task): void {
    this.#tasks.push(task);
    this.#up(task, this.#tasks.length - 1);
  }

  /** Called when the due time of `task` has changed. */
  move(task: Task): void {
    this.#up(task, task.heapIndex);
    this.#down(task, task.heapIndex);
  }

  remove(task: Task): void {
    const index = task.heapIndex;
    task.heapIndex = -1;
    const last = this.#tasks.pop();
    if (last === undefined || last === task) return;
    this.#up(last, index);
    this.#down(last, last.heapIndex);
  }

  #place(task: Task, index: number): void {
    this.#tasks[index] = task;
    task.heapIndex = index;
  }

  #up(task: Task, from: number): void {
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#tasks[parentIndex];
      if (parent === undefined || parent.dueMs <= task.dueMs) break;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(task, index);
  }

  #down(task: Task, from: number): void {
    let index = from;
    for (;;) {
      let childIndex = index * 2 + 1;
      let child = this.#tasks[childIndex];
      if (child === undefined) break;
      const right = this.#tasks[childIndex + 1];
      if (right !== undefined && right.dueMs < child.dueMs) {
        child = right;
        childIndex += 1;
      }
      if (child.dueMs >= task.dueMs) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(task, index);
  }
}
