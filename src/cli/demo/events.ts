/**
 * Accounts of the demo. The events in this file are reported by workers (their leases), by the bank
 * (the writes that arrived) and by the director (the signals that it sent). Picture and verdict are
 * made from these events alone.
 */
export type AccountName = "open" | "guarded";

/** Events of a worker. */
export type WorkerEvent =
  | { readonly kind: "ready"; readonly pid: number }
  | { readonly kind: "acquired"; readonly fence: string; readonly expiresMs: number }
  | { readonly kind: "renewed"; readonly fence: string; readonly expiresMs: number }
  /** The worker has read the balances and computes the new ones. */
  | { readonly kind: "thinking"; readonly fence: string }
  /** The worker has checked its lease for the last time and is about to write. */
  | { readonly kind: "checked"; readonly fence: string }
  | { readonly kind: "replied"; readonly fence: string; readonly account: AccountName; how: Answer }
  | { readonly kind: "released"; readonly fence: string }
  | { readonly kind: "lost"; readonly fence: string; readonly reason: string }
  | { readonly kind: "failed"; readonly message: string };

/** Reply of the bank to a deposit. */
export type Answer = "accepted" | "refused";

/** Signals from the director to a worker. */
export type SignalEvent =
  | { readonly kind: "killed" }
  | { readonly kind: "frozen" }
  | { readonly kind: "resumed" };

/** Result of a write at the bank. */
export interface WriteEvent {
  readonly kind: "write";
  readonly account: AccountName;
  readonly fence: string;
  readonly answer: Answer;
  /** Balance before and after the write. */
  readonly before: number;
  readonly after: number;
  /** Greatest fence seen by the guard, if it refused. */
  readonly seen?: string;
}

export type DemoEvent = (WorkerEvent | SignalEvent | WriteEvent) & {
  readonly worker: string;
  /** Time on the machine's monotonic clock since all workers were ready. */
  readonly atMs: number;
};

export type EventKind = DemoEvent["kind"];
export type EventOf<Kind extends EventKind> = Extract<DemoEvent, { readonly kind: Kind }>;

/** Returns the machine's monotonic time, which is the same in all processes. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
