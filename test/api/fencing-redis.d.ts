// dist/fencing/redis.d.ts
import { type Duration } from "../core/time/durations.ts";
import { type FenceStore } from "./fence-store.ts";
import { type Fenced } from "./guard.ts";
export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export interface FencedDeleteOptions {
    readonly forgetAfter?: Duration;
    readonly resource?: string;
}
export interface FencedSetOptions extends FencedDeleteOptions {
    readonly ttl?: Duration;
}
export interface FencedValue {
    readonly value: string | undefined;
    readonly fence: bigint;
}
export declare function fencedSet(client: unknown, fenced: Fenced | bigint, key: string, value: string, options?: FencedSetOptions): Promise<void>;
export declare function fencedDelete(client: unknown, fenced: Fenced | bigint, key: string, options?: FencedDeleteOptions): Promise<void>;
export declare function fencedGet(client: unknown, key: string): Promise<FencedValue | undefined>;
export interface RedisFencesOptions {
    readonly prefix?: string;
    readonly forgetAfter?: Duration;
}
export declare function redisFences(client: unknown, options?: RedisFencesOptions): FenceStore;

// dist/core/errors.d.ts: in index.d.ts

// dist/core/report/holder.d.ts: in index.d.ts

// dist/core/time/durations.d.ts: in index.d.ts

// dist/fencing/fence-store.d.ts
export type Admission = {
    readonly accepted: true;
} | {
    readonly accepted: false;
    readonly seen: bigint;
};
export interface FenceStore {
    admit(resource: string, fence: bigint): Promise<Admission>;
}
export declare function admission(fence: bigint, greatest: bigint): Admission;
export interface MemoryFencesOptions {
    readonly maxResources?: number;
}
export declare function memoryFences(options?: MemoryFencesOptions): FenceStore;

// dist/fencing/guard.d.ts
import { FenceRejectedError } from "../core/errors.ts";
export interface Fenced {
    readonly fence: bigint;
    readonly resources: readonly string[];
}
export type GuardKind = "postgres" | "mysql" | "redis" | "http";
export interface FenceRejection {
    readonly resource: string;
    readonly fence: bigint;
    readonly seen: bigint | undefined;
    readonly guard: GuardKind;
}
export declare const fenceMax: bigint;
export declare function fenceOf(fenced: Fenced | bigint): bigint;
export declare function guardedResources(fenced: Fenced | bigint, named: string | readonly string[] | undefined): readonly string[];
export declare function subjectOf(fenced: Fenced | bigint, named: string | undefined, fallback: string): string;
export declare function reportRejection(fenced: Fenced | bigint, event: FenceRejection): void;
export declare function rejection(fenced: Fenced | bigint, event: FenceRejection): FenceRejectedError;
export declare function parseFence(value: unknown, where: string): bigint;
export declare function guardKey(resource: string): string;
export declare function isObject(value: unknown): value is Record<PropertyKey, unknown>;
