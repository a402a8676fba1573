// dist/fencing/idempotency.d.ts
import { type Fenced } from "./guard.ts";
export declare function idempotencyKey(fenced: Fenced, purpose?: string): string;

// dist/core/errors.d.ts: in index.d.ts

// dist/core/report/holder.d.ts: in index.d.ts

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
