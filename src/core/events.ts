import type { FindingLevel } from "./doctor.ts";
import type { Holder, LossReason, VoteKind } from "./errors.ts";
import { loggable } from "./loggable.ts";
import type { Diagnostics } from "./ports.ts";
import type { StallReport } from "./stall-report.ts";

interface About {
  readonly resources: readonly string[];
  readonly label: string | undefined;
}

/** Every event of a manager, by name; also published as `holdfast:<name>` for diagnostics. */
export interface LockEvents {
  /** One attempt ended, one way or the other. */
  attempt: About & {
    readonly attempt: number;
    readonly outcome: "granted" | "held" | "failed";
    readonly elapsedMs: number;
    readonly error: Error | undefined;
  };
  /** An attempt found the resource held; the next one comes after `retryInMs`. */
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
  /** A renewal failed; the lease still has `remainingMs` of its old validity. */
  doubtful: About & { readonly remainingMs: number; readonly cause: unknown };
  /** It ended without a release. What stood in this process's way meanwhile is told along. */
  lost: About & {
    readonly fence: bigint | undefined;
    readonly reason: LossReason;
    readonly heldMs: number;
    readonly cause: unknown;
  } & StallReport;
  released: About & {
    readonly released: boolean;
    readonly reason: LossReason | undefined;
    /** True if the next waiting call of the manager has it, and the store was not asked. */
    readonly handedOver: boolean;
    readonly heldMs: number;
  };
  /** A guard refused a write because it had seen a greater fence. */
  "fenced-off": About & {
    readonly resource: string;
    readonly fence: bigint;
    readonly seen: bigint | undefined;
    readonly guard: string;
  };
  /** A node failed a vote or did not answer in time. Once per bout, not per command. */
  "node-failed": { readonly node: string; readonly vote: VoteKind; readonly cause: unknown };
  "node-recovered": { readonly node: string };
  /**
   * Another server answers as this node, or the same one with another history: a failover or a
   * restart. Leases that rest on it turn doubtful until they are proven again.
   */
  "node-replaced": { readonly node: string; readonly why: string };
  /** A node answered that it has lost its data or was never admitted. It may not vote. */
  "node-blank": { readonly node: string; readonly why: string };
  /** A blank node waits until every lease it may have forgotten is over. */
  "node-quarantined": { readonly node: string; readonly leftMs: number };
  /** A node may vote again: after a copy of the counters, at first start, or on clocks alone. */
  "node-admitted": { readonly node: string; readonly mode: "copy" | "bootstrap" | "clock" };
  /** A node's clock stepped against ours by more than the drift allowed for. */
  "clock-jump": { readonly node: string; readonly stepMs: number };
  /** An acquisition needed a second round to agree on its fence. */
  "fence-raised": About & { readonly fence: bigint };
  /** Something about the set-up that works but should not stay. */
  warning: {
    readonly what: string;
    readonly why: string;
    readonly remedy: string;
    /** Where it is a finding of the survey: as `locks.doctor()` has it. */
    readonly level?: FindingLevel;
    readonly code?: string;
    readonly node?: string;
  };
}

export type LockEventName = keyof LockEvents;
export type LockListener<Name extends LockEventName> = (event: LockEvents[Name]) => void;

/** Hands events to listeners and to the diagnostics port; free where nobody listens. */
export class Emitter {
  readonly #diagnostics: Diagnostics;
  readonly #listeners = new Map<LockEventName, Set<(event: never) => void>>();

  constructor(diagnostics: Diagnostics) {
    this.#diagnostics = diagnostics;
  }

  on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void {
    let listeners = this.#listeners.get(name);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(name, listeners);
    }
    // Wrapped, so that the same function added twice is two listeners, each with its own removal.
    const added = (event: LockEvents[Name]): void => listener(event);
    listeners.add(added);
    return () => {
      listeners.delete(added);
    };
  }

  /** Asked before an event object is built. */
  wants(name: LockEventName): boolean {
    const listeners = this.#listeners.get(name);
    return (
      (listeners !== undefined && listeners.size > 0) || this.#diagnostics.hasSubscribers(name)
    );
  }

  emit<Name extends LockEventName>(name: Name, about: LockEvents[Name]): void {
    if (!this.wants(name)) return;
    const event = loggable(about);
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        (listener as LockListener<Name>)(event);
      } catch (error) {
        // A user's listener must not turn a granted lease into a failed call.
        this.#diagnostics.listenerFailed(error);
      }
    }
    if (this.#diagnostics.hasSubscribers(name)) this.#diagnostics.publish(name, event);
  }
}
