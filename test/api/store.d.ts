export interface Emitter {
    on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void;
    wants(name: LockEventName): boolean;
    emit<Name extends LockEventName>(name: Name, event: LockEvents[Name]): void;
}

export interface Mark {
    readonly value: number;
    readonly fence: bigint;
}

export type RaiseOutcome = {
    readonly kind: "raised";
}
 | {
    readonly kind: "refused";
}
 | {
    readonly kind: "early";
};

export declare const earlyMsMax = 1000;

export declare const marksMax = 10000;

export declare function replacesMark(stored: Mark | undefined, next: Mark): boolean;

export declare function labelOf(owner: string): string | undefined;

export declare function isOwner(value: string): boolean;

export interface Instant {
    readonly monotonicMs: number;
    readonly steadyMs: number;
}

export interface CancelTimer {
    (): void;
    readonly keepAlive?: (keepAlive: boolean) => void;
}

export interface Clock {
    monotonicMs(): number;
    wallMs(): number;
    setTimer(delayMs: number, keepAlive: boolean, callback: () => void): CancelTimer;
    readonly timerSlackMs: number;
}

export interface SteadyClock extends Clock {
    now(): Instant;
}

export interface Random {
    fraction(): number;
    uniqueBase(): string;
}

export interface Diagnostics {
    hasSubscribers(name: string): boolean;
    publish(name: string, event: unknown): void;
    listenerFailed(error: unknown): void;
}

export interface Stalls {
    open?(): void;
    close?(): void;
    watch(): void;
    maxMs(sinceMs: number): number;
    maxGcMs?(sinceMs: number): number;
    suspendedMs?(sinceMs: number): number;
}

export interface AsyncContext {
    run<Result>(value: object, work: () => Result): Result;
    current(): object | undefined;
}

export interface SteadyRuntime extends Runtime {
    readonly clock: SteadyClock;
}

export interface Cancellation {
    readonly cancelled: boolean;
    listen(listener: (() => void) | undefined): void;
    orUntil(work: Promise<void>): Promise<void>;
}

export interface AcquireRequest {
    readonly resources: readonly string[];
    readonly owner: string;
    readonly ttlMs: number;
    readonly started: Instant;
    readonly waitEndsMs?: number;
    readonly cancellation: Cancellation;
}

export interface Grant {
    readonly resources: readonly string[];
    readonly owner: string;
    readonly fence: bigint | undefined;
    readonly validityMs: number;
}

export type AttemptOutcome = {
    readonly kind: "granted";
    readonly grant: Grant;
} | {
    readonly kind: "held";
    readonly holder: Holder | undefined;
    readonly retryInMs?: number | undefined;
    readonly rank?: number | undefined;
    readonly recheckMs?: number;
    readonly split?: boolean;
    readonly votes?: () => readonly Vote[];
    readonly cleanup: Promise<void> | undefined;
} | {
    readonly kind: "failed";
    readonly error: HoldfastError;
    readonly votesInMs?: number | undefined;
    readonly retryable: boolean;
    readonly cleanup: Promise<void> | undefined;
};

export type ExtendOutcome = {
    readonly kind: "extended";
    readonly validityMs: number;
}
 | {
    readonly kind: "gone";
}
 | {
    readonly kind: "failed";
    readonly error: HoldfastError;
};

export type OnExtended = (index: number, outcome: ExtendOutcome, received: Instant) => void;

export type ProveOutcome = {
    readonly kind: "proven";
} | {
    readonly kind: "gone";
} | {
    readonly kind: "failed";
    readonly error: HoldfastError;
};

export type BreakAnswer = 
{
    readonly kind: "broken";
}
 | {
    readonly kind: "gone";
}
 | {
    readonly kind: "failed";
    readonly error: HoldfastError;
};

export interface StoreContext {
    readonly runtime: SteadyRuntime;
    readonly scheduler: Scheduler;
    readonly events: Emitter;
    reconsider(judge: (grant: Grant) => LossReason | undefined): void;
    doubt(judge: (grant: Grant) => Error | undefined): void;
}

export interface Waiting {
    attempt(request: AcquireRequest): Promise<AttemptOutcome>;
    listen(listener: (() => void) | undefined): void;
    leave(): Promise<void>;
}

export interface OpenStore {
    attempt(request: AcquireRequest): Promise<AttemptOutcome>;
    waiting?(resources: readonly string[]): Waiting | undefined;
    gapRemainingMs?(resources: readonly string[]): number;
    extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome>;
    extendMany?(grants: readonly Grant[], ttlMs: number, onExtended: OnExtended): void;
    prove(grant: Grant): Promise<ProveOutcome>;
    handOver?(grant: Grant): boolean;
    release(grant: Grant): Promise<ReleaseOutcome>;
    inspect(resource: string): Promise<Inspection>;
    list?(): Promise<readonly Inspection[]>;
    break?(resource: string, owners: readonly string[]): Promise<BreakAnswer>;
    mark?(name: string): Promise<Mark | undefined>;
    raiseMark?(name: string, mark: Mark, dueMs: number): Promise<RaiseOutcome>;
    nodes(): Promise<readonly NodeStatus[]>;
    doctor(ttlMs: number): Promise<readonly Finding[]>;
    close(): Promise<void>;
}

export interface DurationBounds {
    readonly minMs: number;
    readonly maxMs: number;
}

export declare function durationMs(option: string, value: unknown, bounds: DurationBounds): number;

export interface Task {
    dueMs: number;
    heapIndex: number;
    readonly keepAlive: boolean;
    readonly isBrief?: boolean;
    readonly earlyMs?: number;
    run(moment: Instant): void;
}

export interface Scheduler {
    readonly clock: SteadyClock;
    at(dueMs: number, keepAlive: boolean, callback: () => void): Task;
    schedule(task: Task, dueMs: number): void;
    cancel(task: Task): void;
}

// Runtime: in index.d.ts
// Store: in index.d.ts
