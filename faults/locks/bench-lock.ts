import type { Fenced } from "../../src/fencing/guard.ts";

/** A lock library as this run uses it. */
export interface BenchLock {
  /** Waits for as long as configured. Contention and faults are returned as values. */
  acquire(resource: string): Promise<Acquired>;
  close(): Promise<void>;
}

export type Acquired =
  | { readonly kind: "granted"; readonly lease: BenchLease }
  | { readonly kind: "refused"; readonly why: string };

export interface BenchLease {
  /** Undefined if the library has no fences. */
  readonly fenced: Fenced | undefined;
  /** Moment at which the granted attempt began, if the library reports it. */
  readonly startedMs: number | undefined;
  /** True if the library reports right now that the lock is valid. */
  trusted(): boolean;
  /** End of the validity on the run's clock, if the library reports it. */
  untilMs(): number | undefined;
  /**
   * Latest end that the library has named by itself. Given if `untilMs` looks at the lease, which
   * makes the library report a loss that it had missed.
   */
  namedUntilMs?(): number | undefined;
  /** Called at most once, when the library itself reports the loss. */
  onLost(listener: (reason: string) => void): void;
  /** Extends or proves the lease; left out if the library cannot. */
  extend?(): Promise<string>;
  prove?(): Promise<string>;
  /** Meaning of `release`: ends a scoped form, or calls the lease's own release. */
  readonly releasedBy?: "using" | "release";
  release(): Promise<string>;
}

export interface LockTerms {
  readonly ttlMs: number;
  readonly waitMs: number;
  /** Approximate pause between two attempts. */
  readonly retryMs: number;
}
