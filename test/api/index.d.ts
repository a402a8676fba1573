// dist/index.d.ts
import type { Locks } from "./core/locks.ts";
import type { LockDefaults } from "./core/options.ts";
import type { Runtime } from "./core/ports.ts";
import type { Store } from "./core/store.ts";
export interface CreateLocksOptions extends LockDefaults {
    readonly runtime?: Runtime;
}
export declare function createLocks(store: Store, options?: CreateLocksOptions): Locks;
export { renderFindings } from "./core/report/doctor.ts";
export type { Finding, FindingLevel } from "./core/report/doctor.ts";
export type { Duration } from "./core/time/durations.ts";
export { AcquireTimeoutError, ClosedError, FenceRejectedError, ForeignHolderError, HoldfastError, InvalidOptionError, isHoldfastError, LeaseLostError, LeaseReleasedError, QuorumError, ReplicationError, StoreError, TooManyWaitersError, UnsupportedError, } from "./core/errors.ts";
export { SelfDeadlockError } from "./core/acquire/self-deadlock-error.ts";
export type { BreakOptions, BreakOutcome } from "./core/acquire/break.ts";
export type { ErrorCode, Holder, LossReason, ReplicationFault, Vote, VoteKind, } from "./core/errors.ts";
export type { LockEventName, LockEvents, LockListener } from "./core/events.ts";
export type { Lease, LeaseState } from "./core/lease/lease.ts";
export type { Locks, Resources, Work } from "./core/locks.ts";
export type { LockDefaults, LockOptions, RetryOptions } from "./core/options.ts";
export type { AsyncContext, Clock, Diagnostics, Instant, Random, Runtime, Stalls, } from "./core/ports.ts";
export type { Inspection, NodeInspection, NodeStatus, ReleaseOutcome, Store, StoreCapabilities, } from "./core/store.ts";

// dist/core/acquire/acquire-call.d.ts
import type { CallerSignals } from "./caller-signals.ts";
import { Cancellation } from "./cancellation.ts";
import type { ResolvedOptions } from "../options.ts";
export declare class AcquireCall extends Cancellation {
    #private;
    readonly resources: readonly string[];
    readonly options: ResolvedOptions;
    constructor(resources: readonly string[], options: ResolvedOptions);
    bind(signals: CallerSignals): void;
    unbind(): void;
    cancel(reason: unknown): void;
    settling<Result>(work: Promise<Result>): Promise<Result>;
    fail(error: unknown): void;
}

// dist/core/acquire/acquire.d.ts
import type { AcquireCall } from "./acquire-call.ts";
import type { Emitter } from "../events.ts";
import type { Lines } from "./lines.ts";
import type { Owners } from "./owners.ts";
import type { Instant, SteadyRuntime } from "../ports.ts";
import type { Scheduler } from "../time/scheduler.ts";
import type { AttemptOutcome, Grant, OpenStore } from "../store.ts";
export interface AcquireContext {
    readonly runtime: SteadyRuntime;
    readonly scheduler: Scheduler;
    readonly store: OpenStore;
    readonly events: Emitter;
    readonly owners: Owners;
    readonly lines: Lines;
}
export interface Acquired {
    readonly grant: Grant;
    readonly started: Instant;
    readonly attempts: number;
    readonly waitedMs: number;
    readonly validityMs?: number;
}
export type Refused = Exclude<AttemptOutcome, {
    kind: "granted";
}>;
export interface FirstAttempt {
    readonly started: Instant;
    readonly outcome: AttemptOutcome;
}
export declare function ask({ owners }: AcquireContext, store: Pick<OpenStore, "attempt">, call: AcquireCall, started: Instant, waitEndsMs: number): Promise<AttemptOutcome>;
export declare function acquire(context: AcquireContext, call: AcquireCall, first?: FirstAttempt): Promise<Acquired | Refused>;
export declare function giveBack({ store, lines }: AcquireContext, call: AcquireCall, grant: Grant): Promise<never>;
export declare function mustWaitFirst(context: AcquireContext, call: AcquireCall): boolean;
export declare function failure(context: AcquireContext, { resources }: AcquireCall, refused: Refused, attempts: number, waitedMs: number): Error;
export declare function checked(context: AcquireContext, call: AcquireCall, attempt: number, started: Instant, told: AttemptOutcome, heard: Instant): AttemptOutcome;

// dist/core/acquire/break.d.ts
import { type AcquireContext } from "./acquire.ts";
import { type Holder } from "../errors.ts";
import type { ResolvedOptions } from "../options.ts";
import type { Inspection } from "../store.ts";
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
export declare function breakLock(context: AcquireContext, options: ResolvedOptions, seen: Inspection, foreignToo: boolean): Promise<BreakOutcome>;

// dist/core/acquire/caller-signals.d.ts
import type { Cancellation } from "./cancellation.ts";
export declare class CallerSignals {
    #private;
    bind(signal: AbortSignal, call: Cancellation): SignalBinding;
    unbind(binding: SignalBinding, call: Cancellation): void;
}
export declare class SignalBinding {
    #private;
    readonly signal: AbortSignal;
    constructor(signal: AbortSignal, first: Cancellation);
    add(call: Cancellation): void;
    remove(call: Cancellation): boolean;
}

// dist/core/acquire/cancellation.d.ts
export declare class Cancellation {
    #private;
    get cancelled(): boolean;
    get reason(): unknown;
    cancel(reason: unknown): void;
    listen(listener: (() => void) | undefined): void;
    orUntil(work: Promise<void>): Promise<void>;
}

// dist/core/acquire/hand-over.d.ts
import type { HeldLease } from "../lease/held-lease.ts";
import type { Lines } from "./lines.ts";
import type { Instant } from "../ports.ts";
import type { Grant, OpenStore } from "../store.ts";
export interface Offer {
    readonly grant: Grant;
    readonly started: Instant;
    readonly validityMs: number;
}
interface HandOverContext {
    readonly lines: Lines;
    readonly store: OpenStore;
}
export declare function handOver({ lines, store }: HandOverContext, lease: HeldLease, grant: Grant): Grant | undefined;
export {};

// dist/core/acquire/lines.d.ts
import { type Holder, type Vote } from "../errors.ts";
import type { Offer } from "./hand-over.ts";
import type { LeaseTerms } from "../lease/lease.ts";
import type { Grant } from "../store.ts";
export interface LineWaiter {
    wake(): void;
    wouldTake(terms: Pick<LeaseTerms, "ttlMs" | "label">): boolean;
    take(offer: Offer): void;
}
export interface Refusal {
    readonly holder: Holder | undefined;
    readonly votes?: () => readonly Vote[];
}
export declare class Lines {
    #private;
    get isEmpty(): boolean;
    has(resource: string): boolean;
    join(resource: string, waiter: LineWaiter): void;
    asks(resource: string): void;
    isTurnOf(resource: string, waiter: LineWaiter): boolean;
    holderOf(resource: string): Holder | undefined;
    votesOf(resource: string): (() => readonly Vote[]) | undefined;
    noticeRefusal(resource: string, { holder, votes }: Refusal): void;
    granted(resource: string, waiter: LineWaiter, holder: Holder, nowMs: number): void;
    successorOf(resource: string, owner: string, nowMs: number): LineWaiter | undefined;
    endTurn(resource: string): void;
    passedOn(resource: string, waiter: LineWaiter, fence: bigint | undefined): void;
    leave(resource: string, waiter: LineWaiter): void;
    over({ resources, owner }: Pick<Grant, "resources" | "owner">): void;
}

// dist/core/acquire/owners.d.ts
import type { Random } from "../ports.ts";
export declare class Owners {
    #private;
    constructor(random: Random);
    isOurs(owner: string): boolean;
    next(label: string | undefined): string;
}
export declare function labelOf(owner: string): string | undefined;
export declare function isOwner(value: string): boolean;

// dist/core/acquire/self-deadlock-error.d.ts
import { HoldfastError } from "../errors.ts";
export declare class SelfDeadlockError extends HoldfastError {
    readonly label: string | undefined;
    readonly sinceMs: number;
    constructor(resources: readonly string[], label: string | undefined, sinceMs: number);
}

// dist/core/errors.d.ts
import { type Holder } from "./report/holder.ts";
export type { Holder } from "./report/holder.ts";
export type ErrorCode = "ACQUIRE_TIMEOUT" | "QUORUM" | "LEASE_LOST" | "LEASE_RELEASED" | "FENCE_REJECTED" | "FOREIGN_HOLDER" | "SELF_DEADLOCK" | "STORE" | "REPLICATION" | "UNSUPPORTED" | "TOO_MANY_WAITERS" | "CLOSED" | "INVALID_OPTION";
interface ErrorDetails {
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
    constructor(option: string, expected: string, got: unknown);
}

// dist/core/events.d.ts
import type { FindingLevel } from "./report/doctor.ts";
import type { Holder, LossReason, VoteKind } from "./errors.ts";
import type { Diagnostics } from "./ports.ts";
import type { StallReport } from "./time/stall-report.ts";
interface About {
    readonly resources: readonly string[];
    readonly label: string | undefined;
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
    warning: {
        readonly what: string;
        readonly why: string;
        readonly remedy: string;
        readonly level?: FindingLevel;
        readonly code?: string;
        readonly node?: string;
    };
}
export type LockEventName = keyof LockEvents;
export type LockListener<Name extends LockEventName> = (event: LockEvents[Name]) => void;
export declare class Emitter {
    #private;
    constructor(diagnostics: Diagnostics);
    on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void;
    wants(name: LockEventName): boolean;
    emit<Name extends LockEventName>(name: Name, about: LockEvents[Name]): void;
}
export {};

// dist/core/lease/deadline.d.ts
import type { LeaseTerms } from "./lease.ts";
import type { Instant } from "../ports.ts";
import type { Task } from "../time/scheduler.ts";
export declare class Deadline implements Omit<Task, "run"> {
    #private;
     dueMs: number;
     heapIndex: number;
    constructor(terms: LeaseTerms, started: Instant, validityMs: number);
    get label(): string | undefined;
    set renewAtMs(ms: number);
    get keepAlive(): boolean;
}

// dist/core/lease/held-lease.d.ts
import { Deadline } from "./deadline.ts";
import { type Duration } from "../time/durations.ts";
import type { Lease, LeaseState, LeaseTerms } from "./lease.ts";
import type { Instant } from "../ports.ts";
import type { Task } from "../time/scheduler.ts";
import type { Grant, ReleaseOutcome } from "../store.ts";
export declare class HeldLease extends Deadline implements Lease, Task {
    #private;
    constructor(terms: LeaseTerms, grant: Grant, started: Instant, validityMs?: number);
    get resources(): readonly string[];
    get fence(): bigint;
    get state(): LeaseState;
    get signal(): AbortSignal;
    remainingMs(): number;
    assertHeld(): void;
    prove(): Promise<boolean>;
    extend(ttl?: Duration): Promise<void>;
    release(): Promise<ReleaseOutcome>;
    [Symbol.asyncDispose](): Promise<void>;
    run(moment: Instant): void;
}

// dist/core/lease/lease-host.d.ts
import type { Emitter } from "../events.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Instant, SteadyClock } from "../ports.ts";
import type { RenewalPhases } from "./renewal-phases.ts";
import type { Renewals } from "./renewals.ts";
import type { StallReport } from "../time/stall-report.ts";
import type { Grant, OpenStore } from "../store.ts";
export interface LeaseHost {
    readonly clock: SteadyClock;
    readonly store: OpenStore;
    readonly events: Emitter;
    readonly maxTtlMs: number;
    readonly phases: RenewalPhases;
    readonly renewals: Renewals;
    handOver(lease: HeldLease, grant: Grant): Grant | undefined;
    over(grant: Grant): void;
    forget(lease: HeldLease): void;
    stalls(began: Instant): StallReport;
    reschedule(lease: HeldLease, moment: Instant): void;
    renewed(lease: HeldLease, isRenewed: boolean, moment: Instant): void;
}

// dist/core/lease/lease.d.ts
import type { Duration } from "../time/durations.ts";
import type { LeaseHost } from "./lease-host.ts";
import type { ReleaseOutcome } from "../store.ts";
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
export interface LeaseTerms {
    readonly host: LeaseHost;
    readonly ttlMs: number;
    readonly maxHoldMs: number;
    readonly renewEveryMs: number | undefined;
    readonly label: string | undefined;
}

// dist/core/lease/renewal-phases.d.ts
export declare class RenewalPhases {
    #private;
    next(): number;
}

// dist/core/lease/renewals.d.ts
import type { HeldLease } from "./held-lease.ts";
import type { Instant, SteadyClock } from "../ports.ts";
import type { Grant, OpenStore } from "../store.ts";
export declare class Renewals {
    #private;
    constructor(clock: SteadyClock, store: OpenStore);
    add(lease: HeldLease, grant: Grant, started: Instant, doubts: number): void;
}

// dist/core/locks.d.ts
import type { BreakOptions, BreakOutcome } from "./acquire/break.ts";
import type { Finding } from "./report/doctor.ts";
import type { LockEventName, LockListener } from "./events.ts";
import type { Lease } from "./lease/lease.ts";
import type { LockOptions } from "./options.ts";
import type { Inspection, NodeStatus, StoreCapabilities } from "./store.ts";
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

// dist/core/options.d.ts
import { type Duration } from "./time/durations.ts";
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
export interface ResolvedOptions {
    readonly ttlMs: number;
    readonly waitMs: number;
    readonly renew: boolean | number | undefined;
    readonly maxHoldMs: number;
    readonly retryMinMs: number;
    readonly retryMaxMs: number;
    readonly label: string | undefined;
    readonly signal: AbortSignal | undefined;
}
export declare const ttlMinMs = 10;
export declare const builtInDefaults: ResolvedOptions;
export interface StoreBounds {
    readonly maxTtlMs: number;
    validityMs?(ttlMs: number): number;
}
export declare function resolveOptions(given: LockOptions | undefined, defaults: ResolvedOptions, bounds: StoreBounds): ResolvedOptions;
export declare function knownOptions(option: string, given: object, names: readonly string[]): void;

// dist/core/ports.d.ts
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
export interface Runtime {
    readonly clock: Clock;
    readonly random: Random;
    readonly diagnostics: Diagnostics;
    readonly asyncContext?: AsyncContext;
    readonly stalls?: Stalls;
}
export interface SteadyRuntime extends Runtime {
    readonly clock: SteadyClock;
}

// dist/core/report/doctor.d.ts
export type FindingLevel = "error" | "warning" | "info";
export interface Finding {
    readonly level: FindingLevel;
    readonly code: string;
    readonly node?: string;
    readonly what: string;
    readonly why: string;
    readonly remedy: string;
}
export declare function sortFindings(findings: readonly Finding[]): readonly Finding[];
export declare function renderFindings(findings: readonly Finding[]): string;
export declare function stallFinding(stallMs: number, ttlMs: number): Finding | undefined;

// dist/core/report/holder.d.ts
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
export declare const noNesting = "leases do not nest";
export declare function nameOf(holder: Holder | undefined): string;
export declare function timeOf(ms: number): string;

// dist/core/store.d.ts
import type { Cancellation } from "./acquire/cancellation.ts";
import type { Finding } from "./report/doctor.ts";
import type { HoldfastError, Holder, LossReason, Vote, VoteKind } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { Instant, SteadyRuntime } from "./ports.ts";
import type { Scheduler } from "./time/scheduler.ts";
export interface StoreCapabilities {
    readonly fencing: boolean;
    readonly multiResource: boolean;
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
    readonly split?: boolean;
    readonly votes?: () => readonly Vote[];
    readonly cleanup: Promise<void> | undefined;
} | {
    readonly kind: "failed";
    readonly error: HoldfastError;
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
export type TellExtended = (place: number, outcome: ExtendOutcome, heard: Instant) => void;
export type ProveOutcome = {
    readonly kind: "proven";
} | {
    readonly kind: "gone";
} | {
    readonly kind: "failed";
    readonly error: HoldfastError;
};
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
export interface NodeStatus {
    readonly node: string;
    readonly admission: "admitted" | "quarantined" | "unknown" | "off";
    readonly quarantineRemainingMs: number | undefined;
    readonly runId: string | undefined;
    readonly version: string | undefined;
    readonly lastFault: unknown;
}
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
    extendMany?(grants: readonly Grant[], ttlMs: number, tell: TellExtended): void;
    prove(grant: Grant): Promise<ProveOutcome>;
    passOn?(grant: Grant): boolean;
    release(grant: Grant): Promise<ReleaseOutcome>;
    inspect(resource: string): Promise<Inspection>;
    list?(): Promise<readonly Inspection[]>;
    break?(resource: string, owners: readonly string[]): Promise<BreakAnswer>;
    nodes(): Promise<readonly NodeStatus[]>;
    doctor(ttlMs: number): Promise<readonly Finding[]>;
    close(): Promise<void>;
}
export interface Store {
    readonly name: string;
    readonly capabilities: StoreCapabilities;
    readonly maxTtlMs: number;
    validityMs?(ttlMs: number): number;
    open(context: StoreContext): OpenStore;
}

// dist/core/time/durations.d.ts
export type Duration = number | `${number}${"ms" | "s" | "m" | "h"}`;
export interface DurationBounds {
    readonly minMs: number;
    readonly maxMs: number;
}
export declare function durationMs(option: string, value: unknown, bounds: DurationBounds): number;

// dist/core/time/scheduler.d.ts
import type { Clock, Instant, SteadyClock } from "../ports.ts";
export interface Task {
    dueMs: number;
    heapIndex: number;
    readonly keepAlive: boolean;
    readonly isBrief?: boolean;
    readonly earlyMs?: number;
    run(moment: Instant): void;
}
export declare class Scheduler {
    #private;
    readonly clock: SteadyClock;
    constructor(clock: Clock);
    onClockStep(listener: () => void): void;
    get size(): number;
    get lasting(): readonly Task[];
    get overdueMs(): number;
    schedule(task: Task, dueMs: number): void;
    cancel(task: Task): void;
    at(dueMs: number, keepAlive: boolean, callback: () => void): Task;
    end(): void;
}

// dist/core/time/stall-report.d.ts
import type { Instant, Stalls, SteadyClock } from "../ports.ts";
export interface StallReport {
    readonly stallMs: number;
    readonly gcMs: number;
    readonly suspendedMs: number;
    readonly why: string | undefined;
}
interface Sources {
    readonly clock: SteadyClock;
    readonly stalls: Stalls | undefined;
    readonly overdueMs: number;
}
export declare function stallReport({ clock, stalls, overdueMs }: Sources, began: Instant): StallReport;
export {};
