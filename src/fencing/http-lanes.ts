// The timers are stored when the module loads, because fake timers of a test replace them later.
const { setTimeout: later, clearTimeout: cancel } = globalThis;

/**
 * Queues that let one request per resource run at a time.
 *
 * Checking the fence alone is not enough: a request with a smaller fence could be admitted first
 * and still write after a request with a greater one.
 */

export type LaneEntry =
  | { readonly entered: true; readonly leave: () => void }
  | { readonly entered: false; readonly why: string };

export interface LaneLimits {
  readonly maxQueue: number;
  readonly queueTimeoutMs: number;
}

export class Lanes {
  readonly #limits: LaneLimits;
  /** Promise per resource. It resolves when all requests queued so far have left. */
  readonly #tails = new Map<string, Promise<void>>();
  #waiting = 0;

  constructor(limits: LaneLimits) {
    this.#limits = limits;
  }

  /**
   * Waits until all earlier requests on any of `resources` have left. Resolves with `entered:
   * false` if the queue is full or the wait takes too long. Never rejects.
   */
  async enter(resources: readonly string[]): Promise<LaneEntry> {
    const before = resources.flatMap((resource) => this.#tails.get(resource) ?? []);
    if (before.length > 0 && this.#waiting >= this.#limits.maxQueue) {
      return { entered: false, why: `${this.#limits.maxQueue} requests wait already` };
    }
    const leave = this.#queue(resources);
    if (before.length === 0) return { entered: true, leave };
    // `#queue` above joins the queues of all resources synchronously, so two requests can never
    // wait for each other.
    const turn = Promise.all(before);
    this.#waiting += 1;
    const came = await this.#inTime(turn);
    this.#waiting -= 1;
    if (came) return { entered: true, leave };
    // The request leaves its queues only after all earlier requests have left, because later
    // requests wait for this one.
    void turn.then(leave);
    return {
      entered: false,
      why: `the requests before this one did not end in ${this.#limits.queueTimeoutMs} ms`,
    };
  }

  #queue(resources: readonly string[]): () => void {
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    for (const resource of resources) this.#tails.set(resource, left);
    void left.then(() => {
      for (const resource of resources) {
        if (this.#tails.get(resource) === left) this.#tails.delete(resource);
      }
    });
    return leave;
  }

  #inTime(turn: Promise<unknown>): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = later(() => resolve(false), this.#limits.queueTimeoutMs);
      void turn.then(() => {
        cancel(timer);
        resolve(true);
      });
    });
  }
}
