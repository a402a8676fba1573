/**
 * What happened, in the words of those it happened to: workers tell of their leases, the bank of
 * the writes that reached it, the director of the signals it sent. The picture and the verdict are
 * made from these alone.
 */
export type AccountName = "open" | "guarded";

/** What a worker tells. */
export type WorkerEvent =
  | { readonly kind: "ready"; readonly pid: number }
  | { readonly kind: "acquired"; readonly fence: string; readonly expiresMs: number }
  | { readonly kind: "renewed"; readonly fence: string; readonly expiresMs: number }
  /** Has read the balances and is busy with the new ones. */
  | { readonly kind: "thinking"; readonly fence: string }
  /** Has looked a last time that its lease is held, and is about to write. */
  | { readonly kind: "checked"; readonly fence: string }
  | { readonly kind: "told"; readonly fence: string; readonly account: AccountName; how: Answer }
  | { readonly kind: "released"; readonly fence: string }
  | { readonly kind: "lost"; readonly fence: string; readonly reason: string }
  | { readonly kind: "failed"; readonly message: string };

/** What the writer of a deposit was answered. */
export type Answer = "accepted" | "refused";

/** What the director did to a worker. */
export type SignalEvent =
  | { readonly kind: "killed" }
  | { readonly kind: "frozen" }
  | { readonly kind: "resumed" };

/** What the bank did with a write. */
export interface WriteEvent {
  readonly kind: "write";
  readonly account: AccountName;
  readonly fence: string;
  readonly answer: Answer;
  /** The balance before it, and after it. */
  readonly before: number;
  readonly after: number;
  /** The greatest fence that the guard had seen, where it refused. */
  readonly seen?: string;
}

export type DemoEvent = (WorkerEvent | SignalEvent | WriteEvent) & {
  readonly worker: string;
  /** On the machine's monotonic clock, counted from when all workers were ready. */
  readonly atMs: number;
};

export type EventKind = DemoEvent["kind"];
export type EventOf<Kind extends EventKind> = Extract<DemoEvent, { readonly kind: Kind }>;

/** All processes of a machine read the same one. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
