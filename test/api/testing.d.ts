// dist/testing/index.d.ts
export { FaultyNode, faultyNode, type Fault, type FaultScope, type SentCommand, } from "./faulty-node.ts";
export { ManualClock, settle, type ManualClockOptions } from "./manual-clock.ts";
export { manualRuntime, type ManualRuntime, type ManualRuntimeOptions } from "./manual-runtime.ts";
export { SeededRandom } from "./seeded-random.ts";
export { storeConformance } from "./conformance.ts";
export type { ConformanceCase, ConformanceHarness } from "./conformance/harness.ts";

// dist/clients/contract.d.ts
export interface RedisConnection {
    readonly library: string;
    readonly topology: "standalone" | "cluster";
    send(key: string, command: readonly string[]): Promise<unknown>;
    firstConnect?(): Promise<void> | undefined;
    line?(): object | undefined;
    resendEpoch?(): unknown;
    subscribe?(channel: string, listener: SubscriptionListener): () => Promise<void>;
}
export interface SubscriptionListener {
    onReady(): void;
    onMessage(message: string): void;
    onLost(cause: unknown): void;
}
export declare class NotConnectedError extends Error {
    readonly name = "NotConnectedError";
    constructor(library: string, status: string);
}

// dist/core/acquire/acquire-call.d.ts: in index.d.ts

// dist/core/acquire/acquire.d.ts: in index.d.ts

// dist/core/acquire/break.d.ts: in index.d.ts

// dist/core/acquire/caller-signals.d.ts: in index.d.ts

// dist/core/acquire/cancellation.d.ts: in index.d.ts

// dist/core/acquire/hand-over.d.ts: in index.d.ts

// dist/core/acquire/lines.d.ts: in index.d.ts

// dist/core/acquire/owners.d.ts: in index.d.ts

// dist/core/errors.d.ts: in index.d.ts

// dist/core/events.d.ts: in index.d.ts

// dist/core/lease/deadline.d.ts: in index.d.ts

// dist/core/lease/held-lease.d.ts: in index.d.ts

// dist/core/lease/lease-host.d.ts: in index.d.ts

// dist/core/lease/lease.d.ts: in index.d.ts

// dist/core/lease/renewal-phases.d.ts: in index.d.ts

// dist/core/lease/renewals.d.ts: in index.d.ts

// dist/core/locks.d.ts: in index.d.ts

// dist/core/options.d.ts: in index.d.ts

// dist/core/ports.d.ts: in index.d.ts

// dist/core/report/doctor.d.ts: in index.d.ts

// dist/core/report/holder.d.ts: in index.d.ts

// dist/core/store.d.ts: in index.d.ts

// dist/core/time/durations.d.ts: in index.d.ts

// dist/core/time/scheduler.d.ts: in index.d.ts

// dist/core/time/stall-report.d.ts: in index.d.ts

// dist/testing/conformance.d.ts
import type { ConformanceCase } from "./conformance/harness.ts";
export declare const storeConformance: readonly ConformanceCase[];

// dist/testing/conformance/harness.d.ts
import type { Locks } from "../../core/locks.ts";
import type { LockDefaults } from "../../core/options.ts";
import type { StoreCapabilities } from "../../core/store.ts";
export interface ConformanceHarness {
    open(defaults?: LockDefaults): Promise<Locks>;
    readonly capabilities: StoreCapabilities;
    readonly maxTtlMs: number;
    readonly namespace: string;
    readonly shortTtlMs?: number;
    readonly settleMs?: number;
    advance?(ms: number): Promise<void>;
}
export interface ConformanceCase {
    readonly name: string;
    readonly run: (harness: ConformanceHarness) => Promise<void>;
}

// dist/testing/faulty-node.d.ts
import { type RedisConnection } from "../clients/contract.ts";
import type { Clock } from "../core/ports.ts";
export type Fault = 
{
    readonly kind: "delay-request";
    readonly ms: number;
}
 | {
    readonly kind: "delay-reply";
    readonly ms: number;
}
 | {
    readonly kind: "lose-request";
}
 | {
    readonly kind: "lose-reply";
}
 | {
    readonly kind: "hold-reply";
}
 | {
    readonly kind: "hold-request";
}
 | {
    readonly kind: "error";
    readonly message: string;
}
 | {
    readonly kind: "break";
}
 | {
    readonly kind: "disconnect";
}
 | {
    readonly kind: "duplicate";
};
export interface SentCommand {
    readonly key: string;
    readonly command: readonly string[];
    readonly fault: Fault["kind"] | undefined;
}
export interface FaultScope {
    readonly when?: (command: readonly string[], key: string) => boolean;
    readonly times?: number;
}
export declare class FaultyNode implements RedisConnection {
    #private;
    readonly library: string;
    readonly topology: RedisConnection["topology"];
    readonly firstConnect?: NonNullable<RedisConnection["firstConnect"]>;
    readonly subscribe?: NonNullable<RedisConnection["subscribe"]>;
    constructor(connection: RedisConnection, clock: Clock);
    get sent(): readonly SentCommand[];
    get heldCount(): number;
    inject(fault: Fault, scope?: FaultScope): () => void;
    heal(): void;
    letGo(count?: number): void;
    forget(): void;
    send(key: string, command: readonly string[]): Promise<unknown>;
    resendEpoch(): object;
}
export declare function faultyNode(connection: RedisConnection, clock: Clock): FaultyNode;

// dist/testing/manual-clock.d.ts
import type { CancelTimer, Clock } from "../core/ports.ts";
export interface ManualClockOptions {
    readonly monotonicMs?: number;
    readonly wallMs?: number;
    readonly timerSlackMs?: number;
}
export declare class ManualClock implements Clock {
    #private;
    readonly timerSlackMs: number;
    constructor(options?: ManualClockOptions);
    monotonicMs(): number;
    wallMs(): number;
    setTimer(delayMs: number, keepAlive: boolean, callback: () => void): CancelTimer;
    get pendingTimers(): number;
    get keepingAlive(): number;
    advance(ms: number): Promise<void>;
    pause(ms: number): void;
    stepWall(ms: number): void;
}
export declare function settle(): Promise<void>;

// dist/testing/manual-runtime.d.ts
import type { Diagnostics, Runtime } from "../core/ports.ts";
import { ManualClock, type ManualClockOptions } from "./manual-clock.ts";
export interface ManualRuntimeOptions extends ManualClockOptions {
    readonly seed?: number;
    readonly diagnostics?: Diagnostics;
}
export interface ManualRuntime {
    readonly runtime: Runtime;
    readonly clock: ManualClock;
    readonly listenerErrors: readonly unknown[];
}
export declare function manualRuntime(options?: ManualRuntimeOptions): ManualRuntime;

// dist/testing/seeded-random.d.ts
import type { Random } from "../core/ports.ts";
export declare class SeededRandom implements Random {
    #private;
    constructor(seed: number);
    fraction(): number;
    uniqueBase(): string;
}
