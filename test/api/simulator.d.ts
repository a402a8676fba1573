export interface Break {
    readonly promise: "exclusion" | "fences";
    readonly why: string;
    readonly fromMs: number;
    readonly untilMs: number;
}

export declare class Assumptions {
    #private;
    readonly breaks: Break[];
    breakExclusion(fromMs: number, untilMs: number, why: string): void;
    breakFences(atMs: number, why: string): void;
    exclusionHoldsAt(atMs: number): boolean;
    exclusionHeld(fromMs: number, untilMs: number): boolean;
    fenceEpoch(atMs: number): number;
    get fencesHeld(): boolean;
}

export declare function checkConfirmations(confirmations: readonly ConfirmationRecord[], grants: readonly GrantRecord[], epochOf: (atMs: number) => number): Violation[];

export declare function checkFences(grants: readonly GrantRecord[], epochOf: (grant: GrantRecord) => number | undefined): Violation[];

export declare function judge(history: History, assumptions: Assumptions): Violation[];

export interface MutexModel<State> {
    readonly name: string;
    readonly start: State;
    acquire(state: State, tenure: TenureRecord): State | undefined;
    end(state: State, tenure: TenureRecord): State | undefined;
}

export declare const ownerAwareMutex: MutexModel<Held>;

export declare const fencedMutex: MutexModel<Held>;

export declare function checkMutex<State>(model: MutexModel<State>, tenures: readonly TenureRecord[]): Violation[];

export interface GrantRecord {
    readonly client: string;
    readonly resources: readonly string[];
    readonly startedMs: number;
    readonly completedMs: number;
    readonly fence: bigint | undefined;
}

export interface TenureRecord {
    readonly client: string;
    readonly resource: string;
    readonly fence: bigint | undefined;
    readonly startedMs: number;
    readonly acquiredMs: number;
    readonly trustedUntilMs: number;
}

export interface ConfirmationRecord {
    readonly client: string;
    readonly resources: readonly string[];
    readonly fence: bigint | undefined;
    readonly grantedMs: number;
    readonly startedMs: number;
}

export interface Violation {
    readonly rule: (typeof violationRules)[number];
    readonly atMs: number;
    readonly text: string;
}

export interface History {
    readonly grants: readonly GrantRecord[];
    readonly tenures: readonly TenureRecord[];
    readonly confirmations?: readonly ConfirmationRecord[];
}

export interface PageOptions {
    readonly replay?: string;
}

export declare function htmlTimeline(report: SimulationReport, options?: PageOptions): string;

export interface TimelineOptions {
    readonly commands?: boolean;
    readonly width?: number;
    readonly replay?: string;
}

export declare function textTimeline(report: SimulationReport, options?: TimelineOptions): string;

export type Fault = {
    readonly kind: "cut";
    readonly atMs: number;
    readonly forMs: number;
    readonly client: number;
    readonly node: number;
    readonly direction: "there" | "back" | "both";
}
 | {
    readonly kind: "ring";
    readonly atMs: number;
    readonly forMs: number;
} | {
    readonly kind: "reset";
    readonly atMs: number;
    readonly client: number;
    readonly node: number;
} | {
    readonly kind: "lag";
    readonly atMs: number;
    readonly forMs: number;
    readonly client: number;
    readonly node: number;
    readonly byMs: number;
} | {
    readonly kind: "crash";
    readonly atMs: number;
    readonly forMs: number;
    readonly node: number;
    readonly kept: Kept;
    readonly silent: boolean;
} | {
    readonly kind: "freeze";
    readonly atMs: number;
    readonly forMs: number;
    readonly node: number;
} | {
    readonly kind: "slow";
    readonly atMs: number;
    readonly forMs: number;
    readonly node: number;
    readonly byMs: number;
} | {
    readonly kind: "snapshot";
    readonly atMs: number;
    readonly node: number;
} | {
    readonly kind: "flush";
    readonly atMs: number;
    readonly node: number;
} | {
    readonly kind: "evict";
    readonly atMs: number;
    readonly node: number;
} | {
    readonly kind: "evict-record";
    readonly atMs: number;
    readonly node: number;
} | {
    readonly kind: "script-flush";
    readonly atMs: number;
    readonly node: number;
} | {
    readonly kind: "step-node";
    readonly atMs: number;
    readonly node: number;
    readonly byMs: number;
} | {
    readonly kind: "step-client";
    readonly atMs: number;
    readonly client: number;
    readonly byMs: number;
} | {
    readonly kind: "pause";
    readonly atMs: number;
    readonly forMs: number;
    readonly client: number;
    readonly suspended: boolean;
} | {
    readonly kind: "kill";
    readonly atMs: number;
    readonly forMs: number;
    readonly client: number;
}
 | {
    readonly kind: "quit";
    readonly atMs: number;
    readonly forMs: number;
    readonly client: number;
};

export type FaultKind = Fault["kind"];

export interface WorkPlan {
    readonly resources: readonly string[];
    readonly loops: number;
    readonly ttlMs: number;
    readonly lives?: readonly number[];
    readonly waitMs: number;
    readonly thinkMs: number;
    readonly holdMs: number;
    readonly minRetryMs: number;
    readonly maxRetryMs: number;
    readonly renewChance: number;
    readonly severalChance: number;
    readonly abandonChance: number;
    readonly abortChance: number;
    readonly abortAtGrantChance?: number;
    readonly extendChance: number;
    readonly proveChance: number;
    readonly lateWriteChance: number;
}

export interface StorePlan {
    readonly fencing: boolean;
    readonly admission: "strict" | "off";
    readonly maxTtlMs: number;
    readonly driftFactor: number;
    readonly driftFixedMs: number;
    readonly nodeTimeoutMs?: number;
}

export interface Scenario {
    readonly seed: number;
    readonly nodes: readonly ServerPlan[];
    readonly clients: readonly ProcessPlan[];
    readonly link: LinkPlan;
    readonly store: StorePlan;
    readonly work: WorkPlan;
    readonly faults: readonly Fault[];
    readonly safetyMs: number;
    readonly livenessMs: number;
}

export interface SimulatorHost {
    drain(): Promise<void> | undefined;
    takeUnhandledRejections?(): readonly unknown[];
}

export interface SimulationOptions {
    readonly keepTrace?: boolean;
    readonly trace?: "hashed" | "off";
}

export interface SimulationReport {
    readonly scenario: Scenario;
    readonly violations: readonly Violation[];
    readonly hash: string;
    readonly eventCount: number;
    readonly virtualMs: number;
    readonly trace: readonly TraceEvent[];
    readonly history: History;
    readonly breaks: readonly Break[];
    readonly faults: ReadonlyMap<FaultKind, number>;
    readonly unfenced: Register["tally"];
    readonly fenced: Register["tally"];
}

export declare function simulate(scenario: Scenario, host: SimulatorHost, options?: SimulationOptions): Promise<SimulationReport>;

export declare function simulateNow(scenario: Scenario, host: SimulatorHost, options?: SimulationOptions): SimulationReport;

export declare function scenarioOf(seed: number): Scenario;

export interface TraceEvent {
    readonly atMs: number;
    readonly lane: string;
    readonly kind: string;
    readonly text: string;
}

export declare class Register {
    #private;
    constructor(fenced: boolean);
    get tally(): {
        readonly accepted: number;
        readonly rejected: number;
        readonly lost: number;
    };
    read(fence: bigint): number | undefined;
    write(fence: bigint, readVersion: number): boolean;
}

// not exported
interface Held {
    readonly holder: TenureRecord | undefined;
    readonly lastFence: bigint;
}

// not exported
declare const violationRules: readonly ["stale-confirmation", "fence-order", "fence-unique", "mutex-model", "late-signal", "trust-beyond-validity", "too-few-votes", "vote-given-up", "false-loss", "false-release", "unreported-loss", "wrong-reason", "stale-write", "orphan-key", "kept-grant", "late-promise", "no-progress", "unexpected-error", "unhandled-rejection"];

// not exported
interface LinkPlan {
    readonly delayMs: number;
    readonly tailChance: number;
    readonly tailMs: number;
    readonly strayChance: number;
    readonly strayMs: number;
    readonly resends: boolean;
}

// not exported
interface ServerPlan {
    readonly version: string;
    readonly rate: number;
    readonly skewMs: number;
    readonly uptimeMs: number;
}

// not exported
type Kept = "all" | "snapshot" | "nothing";

// not exported
interface ProcessPlan {
    readonly rate: number;
    readonly wallSkewMs: number;
}
