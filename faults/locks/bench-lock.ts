import type { Fenced } from "../../src/fencing/guard.ts";

/** A lock library as the bench sees it. */
export interface BenchLock {
  /** Waits as long as the library was told to; contention and faults are values here. */
  acquire(resource: string): Promise<Acquired>;
  close(): Promise<void>;
}

export type Acquired =
  | { readonly kind: "granted"; readonly lease: BenchLease }
  | { readonly kind: "refused"; readonly why: string };

export interface BenchLease {
  /** With a fence, where the library has such a thing. */
  readonly fenced: Fenced | undefined;
  /** When the attempt began that was granted, where the library tells. */
  readonly startedMs: number | undefined;
  /** Whether the library says, right now, that the lock may be relied upon. */
  trusted(): boolean;
  /** Until when, on the bench's clock, it says so; undefined where it does not tell. */
  untilMs(): number | undefined;
  /** Called at most once, when the library tells of the loss by itself. */
  onLost(listener: (reason: string) => void): void;
  /** Has the store extend or prove the lease; left out where the library has no such thing. */
  extend?(): Promise<string>;
  prove?(): Promise<string>;
  /** What `release` does: ends a scoped form, or calls the lease's own release. */
  readonly releasedBy?: "using" | "release";
  release(): Promise<string>;
}

export interface LockTerms {
  readonly ttlMs: number;
  readonly waitMs: number;
  /** The pause between two attempts, about. */
  readonly retryMs: number;
}
