import type { Task } from "./scheduler.ts";

/** A binary heap of tasks, the next one due first. Each task stores its index. */
export class TaskHeap {
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
