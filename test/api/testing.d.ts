export declare const storeConformance: readonly ConformanceCase[];

export interface ConformanceHarness {
    open(defaults?: LockDefaults): Promise<Locks>;
    readonly capabilities: StoreCapabilities;
    readonly maxTtlMs: number;
    readonly namespace: string;
    readonly shortTtlMs?: number;
    readonly settleMs?: number;
    readonly servesInOrder?: boolean;
    cleanUp?(): Promise<void>;
    advance?(ms: number): Promise<void>;
}

export interface ConformanceCase {
    readonly name: string;
    readonly run: (harness: ConformanceHarness) => Promise<void>;
}

export type NodeFault = 
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
    readonly fault: NodeFault["kind"] | undefined;
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
    inject(fault: NodeFault, scope?: FaultScope): () => void;
    heal(): void;
    letGo(count?: number): void;
    forget(): void;
    send(key: string, command: readonly string[]): Promise<unknown>;
    resendEpoch(): object;
}

export declare function faultyNode(connection: RedisConnection, clock: Clock): FaultyNode;

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

export declare class SeededRandom implements Random {
    #private;
    constructor(seed: number);
    fraction(): number;
    uniqueBase(): string;
}
