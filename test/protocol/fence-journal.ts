import type { Lease, Locks, LockOptions, Runtime } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";

interface Entry {
  readonly resources: readonly string[];
  readonly fence: bigint;
  /** Positions in the order of all calls and grants of this process. */
  readonly began: number;
  readonly ended: number;
}

/** Records every acquisition with its fence, and finds violations of their order. */
export class FenceJournal {
  readonly entries: Entry[] = [];
  #clock = 0;

  async acquire(
    locks: Locks,
    resources: string | readonly string[],
    options?: LockOptions,
  ): Promise<Lease> {
    this.#clock += 1;
    const began = this.#clock;
    const lease = await locks.acquire(resources, options);
    this.#clock += 1;
    const { fence } = lease;
    this.entries.push({ resources: lease.resources, fence, began, ended: this.#clock });
    return lease;
  }

  /**
   * Returns pairs for one resource that share a fence, or in which the later one has the smaller
   * fence.
   */
  disorder(): string[] {
    const found: string[] = [];
    for (const a of this.entries) {
      for (const b of this.entries) {
        if (a === b || !a.resources.some((resource) => b.resources.includes(resource))) continue;
        if (a.fence === b.fence) found.push(`fence ${a.fence} was given twice`);
        if (a.ended < b.began && a.fence >= b.fence) {
          found.push(`${b.fence} was asked for after ${a.fence} had been given`);
        }
      }
    }
    return found;
  }
}

/** Returns the runtime of a client whose wall clock is wrong by this much. */
export function skewedRuntime(offsetMs: number): Runtime {
  const { clock } = nodeRuntime;
  return { ...nodeRuntime, clock: { ...clock, wallMs: () => clock.wallMs() + offsetMs } };
}
