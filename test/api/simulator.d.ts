// dist/simulator/index.d.ts
export { judge } from "./checkers/judge.ts";
export { checkConfirmations } from "./checkers/confirmations.ts";
export { checkFences } from "./checkers/fences.ts";
export { checkMutex, fencedMutex, ownerAwareMutex, type MutexModel, } from "./checkers/mutex-models.ts";
export { Assumptions, type Break } from "./assumptions.ts";
export type { ConfirmationRecord, GrantRecord, History, TenureRecord, Violation, } from "./history.ts";
export type { Fault, FaultKind, Scenario, StorePlan, WorkPlan } from "./scenario.ts";
export { simulate, simulateNow, type SimulationOptions, type SimulationReport, type SimulatorHost, } from "./simulate.ts";
export { scenarioOf } from "./swarm.ts";
export type { TraceEvent } from "./trace.ts";
export type { PageOptions } from "./report/html-page.ts";
export { htmlTimeline } from "./report/html-timeline.ts";
export { textTimeline, type TimelineOptions } from "./report/text-timeline.ts";

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

// dist/simulator/assumptions.d.ts
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

// dist/simulator/checkers/confirmations.d.ts
import type { ConfirmationRecord, GrantRecord, Violation } from "../history.ts";
export declare function checkConfirmations(confirmations: readonly ConfirmationRecord[], grants: readonly GrantRecord[], epochOf: (atMs: number) => number): Violation[];

// dist/simulator/checkers/fences.d.ts
import type { GrantRecord, Violation } from "../history.ts";
export declare function checkFences(grants: readonly GrantRecord[], epochOf: (grant: GrantRecord) => number | undefined): Violation[];

// dist/simulator/checkers/judge.d.ts
import type { Assumptions } from "../assumptions.ts";
import type { History, Violation } from "../history.ts";
export declare function judge(history: History, assumptions: Assumptions): Violation[];

// dist/simulator/checkers/mutex-models.d.ts
import type { TenureRecord, Violation } from "../history.ts";
export interface MutexModel<State> {
    readonly name: string;
    readonly start: State;
    acquire(state: State, tenure: TenureRecord): State | undefined;
    end(state: State, tenure: TenureRecord): State | undefined;
}
interface Held {
    readonly holder: TenureRecord | undefined;
    readonly lastFence: bigint;
}
export declare const ownerAwareMutex: MutexModel<Held>;
export declare const fencedMutex: MutexModel<Held>;
export declare function checkMutex<State>(model: MutexModel<State>, tenures: readonly TenureRecord[]): Violation[];
export {};

// dist/simulator/drifting-clock.d.ts
export declare class DriftingClock {
    #private;
    readonly rate: number;
    constructor(epochMs: number, rate: number);
    at(realMs: number): number;
    realUntil(shownMs: number, realMs: number): number;
    step(byMs: number): void;
    hold(realMs: number): void;
    letGo(realMs: number): void;
}

// dist/simulator/event-queue.d.ts
export interface QueuedEvent {
    readonly atMs: number;
    readonly order: number;
    readonly run: () => void;
    cancelled: boolean;
}
export declare class EventQueue {
    #private;
    get size(): number;
    push(atMs: number, run: () => void): QueuedEvent;
    pop(): QueuedEvent | undefined;
}

// dist/simulator/history.d.ts
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
export declare const violationRules: readonly ["stale-confirmation", "fence-order", "fence-unique", "mutex-model", "late-signal", "trust-beyond-validity", "too-few-votes", "vote-given-up", "false-loss", "stale-write", "orphan-key", "late-promise", "no-progress", "unexpected-error", "unhandled-rejection"];
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

// dist/simulator/network/link.d.ts
import { type RedisConnection, type SubscriptionListener } from "../../clients/contract.ts";
import type { SimulatedNode } from "../node/simulated-node.ts";
import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { Scene } from "../scene.ts";
import type { HeardReply } from "../votes.ts";
export interface LinkPlan {
    readonly delayMs: number;
    readonly tailChance: number;
    readonly tailMs: number;
    readonly strayChance: number;
    readonly strayMs: number;
    readonly resends: boolean;
}
export interface LinkWatch {
    onSent(command: readonly string[]): void;
    onExecuting(command: readonly string[]): void;
    onExecuted(command: readonly string[], reply: unknown, isStray: boolean): void;
    onHeard(heard: HeardReply): void;
}
export declare class Link implements RedisConnection {
    #private;
    readonly library = "simulated";
    readonly topology = "standalone";
    readonly machine: SimulatedProcess;
    readonly node: SimulatedNode;
    constructor(scene: Scene, machine: SimulatedProcess, node: SimulatedNode, plan: LinkPlan, watch: LinkWatch);
    send(_key: string, command: readonly string[]): Promise<unknown>;
    line(): object | undefined;
    subscribe(channel: string, listener: SubscriptionListener): () => Promise<void>;
    cut(there: boolean, back: boolean): void;
    heal(there: boolean, back: boolean): void;
    calm(): void;
    get isIdle(): boolean;
    get connectedSinceMs(): number;
    lag(byMs: number): void;
    break(): void;
    abandon(): void;
}

// dist/simulator/node/keyspace.d.ts
import { SortedSet } from "./sorted-set.ts";
type Value = string | Map<string, string> | SortedSet;
interface Entry {
    readonly value: Value;
    readonly expiresMs: number | undefined;
}
export declare class ReplyError extends Error {
    readonly name = "ReplyError";
}
export declare class Keyspace {
    #private;
    constructor(nowMs: () => number);
    keys(): string[];
    get(key: string): string | undefined;
    textOf(key: string): string | undefined;
    hash(key: string): Map<string, string> | undefined;
    sortedSet(key: string): SortedSet | undefined;
    zadd(key: string, member: string, score: number): void;
    zrem(key: string, ...members: readonly string[]): void;
    set(key: string, value: string, ttlMs: number | "keep" | undefined): void;
    hset(key: string, pairs: readonly string[]): number;
    delete(key: string): number;
    pttl(key: string): number;
    pexpire(key: string, ttlMs: number): number;
    clear(): void;
    snapshot(): ReadonlyMap<string, Entry>;
    load(snapshot: ReadonlyMap<string, Entry>): void;
}
export type Snapshot = ReturnType<Keyspace["snapshot"]>;
export {};

// dist/simulator/node/server.d.ts
import { DriftingClock } from "../drifting-clock.ts";
import { Keyspace, type Snapshot } from "./keyspace.ts";
export interface ServerPlan {
    readonly version: string;
    readonly rate: number;
    readonly skewMs: number;
    readonly uptimeMs: number;
}
export interface ServerPorts {
    readonly realMs: () => number;
    readonly newRunId: () => string;
    readonly publish?: (channel: string, message: string) => number;
    readonly listeners?: (channel: string) => number;
}
export declare const epochMs = 1800000000000;
export declare class SimulatedServer {
    #private;
    readonly clock: DriftingClock;
    readonly data: Keyspace;
    constructor(plan: ServerPlan, ports: ServerPorts);
    get runId(): string;
    restart(kept: Snapshot | undefined): void;
    execute(command: readonly string[]): unknown;
}

// dist/simulator/node/simulated-node.d.ts
import type { Scene } from "../scene.ts";
import { SimulatedServer, type ServerPlan } from "./server.ts";
export type Kept = "all" | "snapshot" | "nothing";
export interface NodeClient {
    nodeCrashed(): void;
}
export interface NodeSubscriber extends NodeClient {
    listensTo(channel: string): boolean;
    published(channel: string, message: string): void;
}
export declare class SimulatedNode {
    #private;
    readonly index: number;
    readonly name: string;
    readonly server: SimulatedServer;
    readonly clients: Set<NodeClient>;
    readonly subscribers: Set<NodeSubscriber>;
    constructor(scene: Scene, index: number, plan: ServerPlan);
    get incarnation(): number;
    get isDown(): boolean;
    get isSilent(): boolean;
    get isFrozen(): boolean;
    serve(work: () => void): void;
    freeze(): void;
    thaw(): void;
    slowDown(byMs: number): void;
    takeSnapshot(): void;
    crash(silent: boolean): void;
    restart(kept: Kept): boolean;
}

// dist/simulator/node/sorted-set.d.ts
export declare class SortedSet {
    #private;
    constructor(scores?: Iterable<readonly [string, number]>);
    get size(): number;
    score(member: string): number | undefined;
    add(member: string, score: number): void;
    remove(member: string): void;
    count(from: number, to: number): number;
    members(): readonly string[];
    pairs(): readonly string[];
    copy(): SortedSet;
}

// dist/simulator/process/recording-store.d.ts
import type { ReleaseOutcome, Store } from "../../core/store.ts";
import type { Scene } from "../scene.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
export interface AttemptRecord {
    readonly machine: SimulatedProcess;
    readonly owner: string;
    readonly resources: readonly string[];
    readonly ttlMs: number;
    readonly startedMs: number;
    readonly startedMonotonicMs: number;
    readonly startedWallMs: number;
    isDecided: boolean;
    completedMs: number | undefined;
    heldSinceMs: number;
    fence: bigint | undefined;
    validUntilMonotonicMs: number;
    validUntilWallMs: number;
    validUntilSteadyMs: number;
}
export interface RecordingOptions {
    readonly scene: Scene;
    readonly machine: SimulatedProcess;
    readonly validityMs: (ttlMs: number) => number;
    readonly onGranted: (record: AttemptRecord) => void;
    readonly onConfirmed: (record: AttemptRecord, startedMs: number) => void;
    readonly onReleasing: (owner: string, resources: readonly string[]) => void;
    readonly onReleased: (owner: string, outcome: ReleaseOutcome) => void;
}
export declare class RecordingStore {
    #private;
    readonly byOwner: Map<string, AttemptRecord>;
    readonly byResources: WeakMap<readonly string[], AttemptRecord>;
    constructor(options: RecordingOptions);
    over(store: Store): Store;
}

// dist/simulator/process/simulated-process.d.ts
import type { Runtime } from "../../core/ports.ts";
import { DriftingClock } from "../drifting-clock.ts";
import type { Scene } from "../scene.ts";
import type { SeededRandom } from "../seeded-random.ts";
export interface ProcessPlan {
    readonly rate: number;
    readonly wallSkewMs: number;
}
type Source = "timer" | "network";
export declare class SimulatedProcess {
    #private;
    readonly name: string;
    readonly runtime: Runtime;
    readonly random: SeededRandom;
    readonly monotonic: DriftingClock;
    readonly wall: DriftingClock;
    readonly failures: unknown[];
    constructor(scene: Scene, name: string, plan: ProcessPlan);
    get hasCrashed(): boolean;
    get isPaused(): boolean;
    monotonicMs(): number;
    wallMs(): number;
    steadyMs(): number;
    hasLookedSince(ms: number): boolean;
    pausedMs(): number;
    runsForMs(): number;
    enter(source: Source, run: () => void): void;
    pause(suspended: boolean): void;
    resume(suspended: boolean): boolean;
    crash(): void;
    sleep(ms: number): Promise<void>;
}
export {};

// dist/simulator/report/html-page.d.ts
import type { SimulationReport } from "../simulate.ts";
export declare function escapeHtml(text: string): string;
export interface PageOptions {
    readonly replay?: string;
}
export declare function pageOf(report: SimulationReport, svg: string, options: PageOptions): string;

// dist/simulator/report/html-timeline.d.ts
import type { SimulationReport } from "../simulate.ts";
import { type PageOptions } from "./html-page.ts";
export declare function htmlTimeline(report: SimulationReport, options?: PageOptions): string;

// dist/simulator/report/text-timeline.d.ts
import type { SimulationReport } from "../simulate.ts";
import type { TraceEvent } from "../trace.ts";
export interface TimelineOptions {
    readonly commands?: boolean;
    readonly width?: number;
    readonly replay?: string;
}
export declare function textTimeline(report: SimulationReport, options?: TimelineOptions): string;
export declare function isCommand({ kind }: TraceEvent): boolean;

// dist/simulator/sabotage.d.ts
import type { RedisConnection } from "../clients/contract.ts";
import type { Locks } from "../core/locks.ts";
import type { OpenStore, Store } from "../core/store.ts";
import type { Link } from "./network/link.ts";
import type { Scene } from "./scene.ts";
export interface Sabotage {
    readonly connection?: (link: Link) => RedisConnection;
    readonly store?: (store: Store, scene: Scene) => Store;
    readonly recorded?: (store: Store, scene: Scene) => Store;
    readonly locks?: (locks: Locks, scene: Scene) => Locks;
}
export declare function lyingStore(store: Store, lies: (honest: OpenStore) => Partial<OpenStore>): Store;

// dist/simulator/scenario.d.ts
import type { LinkPlan } from "./network/link.ts";
import type { ServerPlan } from "./node/server.ts";
import type { Kept } from "./node/simulated-node.ts";
import type { ProcessPlan } from "./process/simulated-process.ts";
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

// dist/simulator/scene.d.ts
import { type QueuedEvent } from "./event-queue.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { Trace } from "./trace.ts";
export declare class Scene {
    #private;
    readonly random: SeededRandom;
    readonly trace: Trace;
    constructor(random: SeededRandom, keepTrace: boolean);
    get nowMs(): number;
    after(delayMs: number, run: () => void): QueuedEvent;
    tell(lane: string, kind: string, text: string): void;
    enter(): void;
    step(): boolean | undefined;
}

// dist/simulator/seeded-random.d.ts
export declare class SeededRandom {
    #private;
    constructor(name: string);
    fork(name: string): SeededRandom;
    fraction(): number;
    between(min: number, max: number): number;
    integer(min: number, max: number): number;
    chance(probability: number): boolean;
    pick<Item>(items: readonly Item[]): Item;
    exponential(mean: number): number;
    hex(length: number): string;
}

// dist/simulator/simulate.d.ts
import type { Break } from "./assumptions.ts";
import type { History, Violation } from "./history.ts";
import type { Sabotage } from "./sabotage.ts";
import type { FaultKind, Scenario } from "./scenario.ts";
import type { TraceEvent } from "./trace.ts";
import type { Register } from "./workload/register.ts";
export interface SimulatorHost {
    drain(): Promise<void> | undefined;
    takeUnhandledRejections?(): readonly unknown[];
}
export interface SimulationOptions {
    readonly keepTrace?: boolean;
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
export interface RunOptions extends SimulationOptions {
    readonly sabotage?: Sabotage;
    readonly stepsMax?: number;
}
export declare class Run {
    #private;
    constructor(scenario: Scenario, options: RunOptions);
    goesOn(): boolean;
    step(): boolean;
    report(host: SimulatorHost): SimulationReport;
}

// dist/simulator/swarm.d.ts
import type { Scenario } from "./scenario.ts";
export declare function scenarioOf(seed: number): Scenario;

// dist/simulator/trace.d.ts
export interface TraceEvent {
    readonly atMs: number;
    readonly lane: string;
    readonly kind: string;
    readonly text: string;
}
export declare class Trace {
    #private;
    constructor(keep: boolean);
    get count(): number;
    get events(): readonly TraceEvent[];
    get hash(): string;
    add(atMs: number, lane: string, kind: string, text: string): void;
}

// dist/simulator/votes.d.ts
import type { SimulatedNode } from "./node/simulated-node.ts";
import type { AttemptRecord } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { Scenario } from "./scenario.ts";
import type { Scene } from "./scene.ts";
export interface HeardReply {
    readonly command: readonly string[];
    readonly incarnation: number;
    readonly sentMs: number;
    readonly executedMs: number;
    readonly reply: unknown;
}
export declare class Votes {
    #private;
    constructor(scene: Scene, scenario: Scenario);
    onNodeStep(node: SimulatedNode, byMs: number): void;
    onOwnClock(machine: SimulatedProcess): void;
    onExecuted(node: SimulatedNode, command: readonly string[]): void;
    onHeard(machine: SimulatedProcess, node: SimulatedNode, heard: HeardReply): boolean;
    count({ machine, owner, heldSinceMs }: AttemptRecord): number;
}

// dist/simulator/workload/register.d.ts
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
