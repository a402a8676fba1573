// dist/stores/redis/index.d.ts
export { redlockGroups } from "./redlock-groups.ts";
export { redis, redlock } from "./redlock.ts";
export type { GroupsOptions } from "./groups-options.ts";
export type { DriftOptions, RedisStoreOptions, ReplicasOptions } from "./options.ts";
export type { RedisConnection } from "../../clients/contract.ts";
export { NotConnectedError } from "../../clients/contract.ts";

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

// dist/core/acquire/cancellation.d.ts: in index.d.ts

// dist/core/errors.d.ts: in index.d.ts

// dist/core/events.d.ts: in index.d.ts

// dist/core/ports.d.ts: in index.d.ts

// dist/core/report/doctor.d.ts: in index.d.ts

// dist/core/report/holder.d.ts: in index.d.ts

// dist/core/store.d.ts: in index.d.ts

// dist/core/time/durations.d.ts: in index.d.ts

// dist/core/time/scheduler.d.ts: in index.d.ts

// dist/core/time/stall-report.d.ts: in index.d.ts

// dist/stores/redis/commands/deployment.d.ts
export interface Deployment {
    readonly admission: "strict" | "off";
    readonly ttlMaxMs: number;
    readonly wireFormat: string;
}

// dist/stores/redis/groups-options.d.ts
import type { RedisConnection } from "../../clients/contract.ts";
import { type RedisStoreOptions } from "./options.ts";
import type { StoreSettings } from "./protocol/store-settings.ts";
type Refused = "fencing" | "crossSlot" | "replicas";
export interface GroupsOptions extends Omit<RedisStoreOptions, Refused> {
    readonly layout?: number;
    readonly ids?: readonly string[];
    readonly retired?: Readonly<Record<string, readonly object[]>>;
}
export interface GivenGroup {
    readonly id: string;
    readonly connections: readonly RedisConnection[];
}
export interface ResolvedGroups {
    readonly version: number;
    readonly groups: readonly GivenGroup[];
    readonly retired: readonly GivenGroup[];
    readonly options: StoreSettings;
}
export declare function resolveGroups(given: unknown, options: GroupsOptions): ResolvedGroups;
export {};

// dist/stores/redis/options.d.ts
import type { RedisConnection } from "../../clients/contract.ts";
import { type Duration } from "../../core/time/durations.ts";
import type { ReplicaSettings, StoreSettings } from "./protocol/store-settings.ts";
export interface DriftOptions {
    readonly factor?: number;
    readonly fixed?: Duration;
}
export interface ReplicasOptions {
    readonly acks: number;
    readonly timeout?: Duration;
}
export interface RedisStoreOptions {
    readonly nodeTimeout?: Duration;
    readonly drift?: DriftOptions;
    readonly prefix?: string;
    readonly fencing?: boolean;
    readonly admission?: "strict" | "off";
    readonly maxTtl?: Duration;
    readonly crossSlot?: "refuse" | "ordered";
    readonly replicas?: ReplicasOptions;
    readonly foreignGap?: Duration;
}
export declare function resolveStoreOptions(given: RedisStoreOptions, nodeCount: number): StoreSettings;
export declare function checkLines(replicas: ReplicaSettings | undefined, connections: readonly RedisConnection[]): void;

// dist/stores/redis/protocol/store-settings.d.ts
import type { AcquireRequest } from "../../../core/store.ts";
import type { Deployment } from "../commands/deployment.ts";
export interface ReplicaSettings {
    readonly acks: number;
    readonly timeoutMs: number;
}
export interface StoreSettings extends Deployment {
    readonly replicas: ReplicaSettings | undefined;
    readonly acquiresMax: number;
    readonly nodeTimeoutMs: number | undefined;
    readonly driftFactor: number;
    readonly driftFixedMs: number;
    readonly prefix: string;
    readonly fencing: boolean;
    readonly crossSlot: "refuse" | "ordered";
    readonly foreignGapMs: number;
    readonly nodeCount: number;
}
export declare function driftMs(options: StoreSettings, ttlMs: number): number;
export declare function nodeTimeoutMs(options: StoreSettings, ttlMs: number): number;
export declare function quarantineMs(options: StoreSettings, ttlMs: number): number;
export declare function attemptEndsMs(options: StoreSettings, { started, ttlMs, waitEndsMs }: AcquireRequest, validityMs: number, nowMs: number): number;
export declare function checkTtl(replicas: ReplicaSettings | undefined, ttlMs: number, nodeTimeoutMs: number): void;

// dist/stores/redis/redlock-groups.d.ts
import type { Store } from "../../core/store.ts";
import { type GroupsOptions } from "./groups-options.ts";
export declare function redlockGroups(clients: readonly (readonly object[])[], options?: GroupsOptions): Store;

// dist/stores/redis/redlock.d.ts
import type { Store } from "../../core/store.ts";
import { type RedisStoreOptions } from "./options.ts";
export declare function redlock(clients: readonly object[], options?: RedisStoreOptions): Store;
export declare function redis(client: object, options?: RedisStoreOptions): Store;
