export interface BreakOptions {
    readonly foreign?: boolean;
}

export type BreakOutcome = {
    readonly broken: true;
    readonly resource: string;
    readonly holders: readonly Holder[];
    readonly fence: bigint | undefined;
} | {
    readonly broken: false;
    readonly resource: string;
    readonly reason: "free" | "changed";
};

export type ErrorCode = "ACQUIRE_TIMEOUT" | "QUORUM" | "LEASE_LOST" | "LEASE_RELEASED" | "FENCE_REJECTED" | "FENCE_AHEAD" | "FOREIGN_HOLDER" | "SELF_DEADLOCK" | "STORE" | "REPLICATION" | "UNSUPPORTED" | "TERM_ENDED" | "KEY_REUSED" | "OUTCOME_UNKNOWN" | "TOO_MANY_WAITERS" | "CLOSED" | "INVALID_OPTION";

export interface ErrorDetails {
    readonly resources?: readonly string[] | undefined;
    readonly cause?: unknown;
}

export declare class HoldfastError extends Error {
    readonly code: ErrorCode;
    readonly resources: readonly string[];
    constructor(code: ErrorCode, message: string, details?: ErrorDetails);
    toJSON(): Record<string, unknown>;
}

export declare function isHoldfastError(value: unknown, code?: ErrorCode): value is HoldfastError;

export declare class AcquireTimeoutError extends HoldfastError {
    readonly attempts: number;
    readonly waitedMs: number;
    readonly holder: Holder | undefined;
    readonly votes: readonly Vote[];
    constructor(resources: readonly string[], details: {
        attempts: number;
        waitedMs: number;
        holder?: Holder | undefined;
        votes?: readonly Vote[] | undefined;
    });
}

export type VoteKind = "granted" | "held" | "unknown" | "failed" | "blank";

export interface Vote {
    readonly node: string;
    readonly vote: VoteKind;
    readonly ms: number;
    readonly cause?: unknown;
}

export declare class QuorumError extends HoldfastError {
    readonly votes: readonly Vote[];
    constructor(action: string, resources: readonly string[], votes: readonly Vote[], details: {
        quorum: number;
        cause?: unknown;
        hint?: string | undefined;
    });
}

export type LossReason = "expired" | "taken" | "unreachable" | "clock" | "max-hold";

export declare class LeaseLostError extends HoldfastError {
    readonly reason: LossReason;
    readonly result: unknown;
    constructor(resources: readonly string[], reason: LossReason, details?: {
        cause?: unknown;
        result?: unknown;
    });
}

export declare class LeaseReleasedError extends HoldfastError {
    constructor(resources: readonly string[]);
}

export declare class FenceRejectedError extends HoldfastError {
    readonly fence: bigint;
    readonly seen: bigint | undefined;
    constructor(resource: string, fence: bigint, seen: bigint | undefined);
}

export declare class ForeignHolderError extends HoldfastError {
    readonly type: string;
    constructor(type: string, message: string, details?: ErrorDetails);
}

export declare class StoreError extends HoldfastError {
    constructor(message: string, details?: ErrorDetails);
}

export type ReplicationFault = "acks" | "min-replicas" | "demoted" | "replaced";

export declare class ReplicationError extends HoldfastError {
    readonly fault: ReplicationFault;
    constructor(fault: ReplicationFault, message: string, details?: ErrorDetails);
}

export declare class UnsupportedError extends HoldfastError {
    constructor(message: string, details?: ErrorDetails);
}

export declare class TooManyWaitersError extends HoldfastError {
    constructor(resources: readonly string[], waiters: number);
}

export declare class ClosedError extends HoldfastError {
    constructor(resources?: readonly string[]);
}

export declare class InvalidOptionError extends HoldfastError {
    readonly option: string;
    constructor(option: string, expected: string, got: unknown, message?: string);
}

export interface LockEvents {
    attempt: About & {
        readonly attempt: number;
        readonly outcome: "granted" | "held" | "failed";
        readonly elapsedMs: number;
        readonly error: Error | undefined;
    };
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
    renewed: About & {
        readonly fence: bigint | undefined;
        readonly remainingMs: number;
    };
    doubtful: About & {
        readonly remainingMs: number;
        readonly cause: unknown;
    };
    lost: About & {
        readonly fence: bigint | undefined;
        readonly reason: LossReason;
        readonly heldMs: number;
        readonly cause: unknown;
    } & StallReport;
    released: About & {
        readonly released: boolean;
        readonly reason: LossReason | undefined;
        readonly handedOver: boolean;
        readonly heldMs: number;
    };
    "fence-rejected": About & {
        readonly resource: string;
        readonly fence: bigint;
        readonly seen: bigint | undefined;
        readonly guard: string;
    };
    "node-failed": {
        readonly node: string;
        readonly vote: VoteKind;
        readonly cause: unknown;
    };
    "node-recovered": {
        readonly node: string;
    };
    "node-replaced": {
        readonly node: string;
        readonly why: string;
    };
    "node-blank": {
        readonly node: string;
        readonly why: string;
    };
    "node-quarantined": {
        readonly node: string;
        readonly remainingMs: number;
    };
    "node-admitted": {
        readonly node: string;
        readonly mode: "copy" | "bootstrap" | "clock";
    };
    "clock-jump": {
        readonly node: string;
        readonly stepMs: number;
    };
    "fence-raised": About & {
        readonly fence: bigint;
    };
    warning: Finding;
}

export type LockEventName = keyof LockEvents;

export type LockListener<Name extends LockEventName> = (event: LockEvents[Name]) => void;

export declare class FenceAheadError extends HoldfastError {
    readonly fence: bigint;
    readonly limit: bigint;
    constructor(resource: string, fence: bigint, limit: bigint);
}

export type LeaseState = "held" | "doubtful" | "lost" | "released";

export interface Lease extends AsyncDisposable {
    readonly resources: readonly string[];
    readonly label: string | undefined;
    readonly fence: bigint;
    readonly signal: AbortSignal;
    readonly state: LeaseState;
    remainingMs(): number;
    assertHeld(): void;
    prove(): Promise<boolean>;
    extend(ttl?: Duration): Promise<void>;
    release(): Promise<ReleaseOutcome>;
}

export type Resources = string | readonly string[];

export type Work<Result> = (lease: Lease) => Result | PromiseLike<Result>;

export interface Locks extends AsyncDisposable {
    readonly capabilities: StoreCapabilities;
    acquire(resources: Resources, options?: LockOptions): Promise<Lease>;
    tryAcquire(resources: Resources, options?: LockOptions): Promise<Lease | undefined>;
    using<Result>(resources: Resources, work: Work<Result>): Promise<Result>;
    using<Result>(resources: Resources, options: LockOptions, work: Work<Result>): Promise<Result>;
    inspect(resource: string): Promise<Inspection>;
    list(): Promise<readonly Inspection[]>;
    break(seen: string | Inspection, options?: BreakOptions): Promise<BreakOutcome>;
    nodes(): Promise<readonly NodeStatus[]>;
    doctor(): Promise<readonly Finding[]>;
    on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void;
    close(): Promise<void>;
}

export declare class SelfDeadlockError extends HoldfastError {
    readonly label: string | undefined;
    readonly sinceMs: number;
    constructor(resources: readonly string[], label: string | undefined, sinceMs: number);
}

export interface RetryOptions {
    readonly minDelay?: Duration;
    readonly maxDelay?: Duration;
}

export interface LockOptions {
    readonly ttl?: Duration;
    readonly wait?: Duration | "forever";
    readonly renew?: boolean | Duration;
    readonly maxHold?: Duration;
    readonly retry?: RetryOptions;
    readonly signal?: AbortSignal;
    readonly label?: string;
}

export type LockDefaults = Omit<LockOptions, "signal">;

export interface Runtime {
    readonly clock: Clock;
    readonly random: Random;
    readonly diagnostics: Diagnostics;
    readonly asyncContext?: AsyncContext;
    readonly stalls?: Stalls;
}

export type FindingLevel = "error" | "warning" | "info";

export interface Finding {
    readonly level: FindingLevel;
    readonly code: string;
    readonly node?: string;
    readonly what: string;
    readonly why: string;
    readonly remedy: string;
}

export declare function renderFindings(findings: readonly Finding[]): string;

export interface Holder {
    readonly owner: string;
    readonly foreign?: true;
    readonly self?: true;
    readonly sinceMs?: number;
    readonly neverExpires?: true;
    readonly label?: string;
    readonly fence?: bigint;
    readonly remainingMs?: number;
}

export interface StoreCapabilities {
    readonly fencing: boolean;
    readonly multiResource: boolean;
    readonly marks?: boolean;
}

export type ReleaseOutcome = {
    readonly released: true;
    readonly handedOver?: true;
} | {
    readonly released: false;
    readonly reason: LossReason;
};

export interface NodeInspection {
    readonly node: string;
    readonly vote: Exclude<VoteKind, "granted"> | "free";
    readonly holder?: Holder;
    readonly cause?: unknown;
}

export interface Inspection {
    readonly resource: string;
    readonly state: "held" | "free" | "split" | "unknown";
    readonly foreign?: true;
    readonly neverExpires?: true;
    readonly label: string | undefined;
    readonly fence: bigint | undefined;
    readonly remainingMs: number | undefined;
    readonly waiters?: number;
    readonly nodes: readonly NodeInspection[];
}

export interface NodeStatus {
    readonly node: string;
    readonly admission: "admitted" | "quarantined" | "unknown" | "off";
    readonly quarantineRemainingMs: number | undefined;
    readonly runId: string | undefined;
    readonly version: string | undefined;
    readonly lastFault: unknown;
}

export interface Store {
    readonly name: string;
    readonly capabilities: StoreCapabilities;
    readonly maxTtlMs: number;
    validityMs?(ttlMs: number): number;
    open(context: StoreContext): OpenStore;
}

export type Duration = number | `${number}${"ms" | "s" | "m" | "h"}`;

export interface StallReport {
    readonly stallMs: number;
    readonly gcMs: number;
    readonly suspendedMs: number;
    readonly why: string | undefined;
}

export interface CreateLocksOptions extends LockDefaults {
    readonly runtime?: Runtime;
}

export declare function createLocks(store: Store, options?: CreateLocksOptions): Locks;

// not exported
interface About {
    readonly resources: readonly string[];
    readonly label: string | undefined;
}
