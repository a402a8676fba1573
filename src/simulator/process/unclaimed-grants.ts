import type { Witness } from "../witness.ts";
import type { AttemptRecord } from "./recording-store.ts";

/**
 * Grants that the library has received, and has neither handed to the user nor released. A call
 * that was aborted, or whose manager was closed, must release its grant in the turn of the grant.
 */
export class UnclaimedGrants {
  readonly #records = new Set<AttemptRecord>();

  onGranted(record: AttemptRecord): void {
    this.#records.add(record);
  }

  /** Called when the user received the lease of the grant. */
  onHanded(record: AttemptRecord): void {
    this.#records.delete(record);
  }

  onReleasing(owner: string): void {
    for (const record of this.#records) if (record.owner === owner) this.#records.delete(record);
  }

  /** Reports grants from before `nowMs`. In the turn of a grant, the library is still at work. */
  report(witness: Witness, nowMs: number): void {
    for (const { machine, owner, resources, completedMs = nowMs } of this.#records) {
      if (completedMs >= nowMs) continue;
      const what = `${machine.name} kept ${resources.join("+")} (${owner})`;
      witness.report("kept-grant", `${what} for a call that had ended`);
    }
  }
}
