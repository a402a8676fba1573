// Taken when this module is loaded: fake timers of a test, installed later, replace them.
const { setTimeout: later, clearTimeout: cancel } = globalThis;

/**
 * Lets requests on one resource through one after another. Admission alone is not enough: a
 * request with a smaller fence that was admitted first could still write last.
 */

export type LaneEntry =
  | { readonly entered: true; readonly leave: () => void }
  | { readonly entered: false; readonly why: string };

export interface LaneLimits {
  readonly queueMax: number;
  readonly queueTimeoutMs: number;
}

export class Lanes {
  readonly #limits: LaneLimits;
  /** Per resource: resolves when everyone who came so far has left. */
  readonly #tails = new Map<string, Promise<void>>();
  #waiting = 0;

  constructor(limits: LaneLimits) {
    this.#limits = limits;
  }

  /** Waits for the turn on all `resources` at once. Never rejects. */
  async enter(resources: readonly string[]): Promise<LaneEntry> {
    const before = resources.flatMap((resource) => this.#tails.get(resource) ?? []);
    if (before.length > 0 && this.#waiting >= this.#limits.queueMax) {
      return { entered: false, why: `${this.#limits.queueMax} requests wait already` };
    }
    const leave = this.#queue(resources);
    if (before.length === 0) return { entered: true, leave };
    // Everybody queues on all of their resources in one turn, so no two wait for each other.
    const turn = Promise.all(before);
    this.#waiting += 1;
    const came = await this.#inTime(turn);
    this.#waiting -= 1;
    if (came) return { entered: true, leave };
    // Those behind still wait for those before.
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
