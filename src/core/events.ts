import type { Finding } from "./report/doctor.ts";
import type { Holder, LossReason, VoteKind } from "./errors.ts";
import type { StallReport } from "./time/stall-report.ts";

interface About {
  readonly resources: readonly string[];
  readonly label: string | undefined;
}

/** Events of a manager, by name. Also published on the diagnostics channel `holdfast:<name>`. */
export interface LockEvents {
  /** An attempt ended. */
  attempt: About & {
    readonly attempt: number;
    readonly outcome: "granted" | "held" | "failed";
    readonly elapsedMs: number;
    readonly error: Error | undefined;
  };
  /** An attempt found the resource held. The next attempt comes after `retryInMs`. */
  contended: About & {
    readonly attempt: number;
    readonly holder: Holder | undefined;
    readonly retryInMs: number;
  };
  acquired: About & {
    readonly fence: bigint | undefined;
    readonly attempts: number;
    readonly waitedMs: number;
    readonly remainingMs: number;
  };
  renewed: About & { readonly fence: bigint | undefined; readonly remainingMs: number };
  /**
   * A renewal or a `prove()` failed, or a server was replaced. The lease still has `remainingMs` of
   * its validity.
   */
  doubtful: About & { readonly remainingMs: number; readonly cause: unknown };
  /**
   * The lease ended without a release. The event also reports stalls of this process during the
   * lease.
   */
  lost: About & {
    readonly fence: bigint | undefined;
    readonly reason: LossReason;
    readonly heldMs: number;
    readonly cause: unknown;
  } & StallReport;
  released: About & {
    readonly released: boolean;
    readonly reason: LossReason | undefined;
    /** True if the manager's next waiting call got the lock, without a request to the store. */
    readonly handedOver: boolean;
    readonly heldMs: number;
  };
  /** A guard rejected a write because it had already stored a greater fence. */
  "fence-rejected": About & {
    readonly resource: string;
    readonly fence: bigint;
    readonly seen: bigint | undefined;
    readonly guard: string;
  };
  /**
   * A node failed or did not reply in time. The event comes once per outage, not once per command.
   */
  "node-failed": { readonly node: string; readonly vote: VoteKind; readonly cause: unknown };
  "node-recovered": { readonly node: string };
  /**
   * Another server replies as this node, or the server has another replication history: there was a
   * failover or a restart. Leases that need this node's vote are doubtful until a quorum of nodes
   * confirms again that it has their lock.
   */
  "node-replaced": { readonly node: string; readonly why: string };
  /** A node has lost its data, or was never admitted. Such a blank node may not vote. */
  "node-blank": { readonly node: string; readonly why: string };
  /**
   * A blank node, which may not vote, must wait until every lease whose data it may have lost is
   * over.
   */
  "node-quarantined": { readonly node: string; readonly remainingMs: number };
  /**
   * A blank node may vote now. `copy`: it received the fence counters of other nodes. `bootstrap`:
   * it is the first start of all nodes. `clock`: too few nodes had counters, so its clock sets the
   * fences.
   */
  "node-admitted": { readonly node: string; readonly mode: "copy" | "bootstrap" | "clock" };
  /**
   * A node's clock stepped by more than the drift allowance, compared with this machine's clock.
   */
  "clock-jump": { readonly node: string; readonly stepMs: number };
  /** An acquisition needed a second round, so that a quorum of nodes stores its fence. */
  "fence-raised": About & { readonly fence: bigint };
  /** A problem of a server or of the set-up that was found without a call of `doctor()`. */
  warning: Finding;
}

export type LockEventName = keyof LockEvents;
export type LockListener<Name extends LockEventName> = (event: LockEvents[Name]) => void;

/** Emits the events of one manager. */
export interface Emitter {
  /** Adds a listener. Returns a function that removes it. */
  on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void;
  /** True if the event has a listener. Check this before you build an event that costs much. */
  wants(name: LockEventName): boolean;
  /** Calls all listeners. If one throws, reports its error and still calls the others. */
  emit<Name extends LockEventName>(name: Name, event: LockEvents[Name]): void;
}
