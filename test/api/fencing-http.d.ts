// dist/fencing/http.d.ts
export type { Fenced } from "./guard.ts";
export { memoryFences } from "./fence-store.ts";
export type { Admission, FenceStore, MemoryFencesOptions } from "./fence-store.ts";
export { fenceHeader, fenceHeaders, resourceHeader, withFence } from "./http-headers.ts";
export type { FenceHeaderOptions } from "./http-headers.ts";
export { type Problem, throwIfFenceRejected } from "./http-problem.ts";
export { fenceGuard } from "./http-guard.ts";
export type { FenceGuard, FenceGuardOptions, GuardedRequest } from "./http-guard.ts";

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

// dist/fencing/http-guard.d.ts
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duration } from "../core/time/durations.ts";
import type { FenceStore } from "./fence-store.ts";
export interface GuardedRequest {
    readonly method: string;
    readonly path: string;
    header(name: string): string | undefined;
}
export interface FenceGuardOptions {
    readonly store: FenceStore;
    readonly resourceOf?: (request: GuardedRequest) => string | readonly string[];
    readonly required?: "always" | "writes" | "never";
    readonly maxQueue?: number;
    readonly queueTimeout?: Duration;
}
export interface FenceGuard {
    handle(request: Request, next: (request: Request) => Response | Promise<Response>): Promise<Response>;
    node(req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => unknown): Promise<void>;
}
export declare function fenceGuard(options: FenceGuardOptions): FenceGuard;

// dist/fencing/http-headers.d.ts
import { type Fenced } from "./guard.ts";
export declare const resourceHeader = "Holdfast-Resource";
export declare const fenceHeader = "Holdfast-Fence";
export interface FenceHeaderOptions {
    readonly resource?: string | readonly string[];
}
export declare function fenceHeaders(fenced: Fenced | bigint, options?: FenceHeaderOptions): Record<string, string>;
export declare function withFence(fenced: Fenced | bigint, init?: RequestInit, options?: FenceHeaderOptions): RequestInit;
export declare function readFence(value: string): bigint | undefined;
export declare function readResources(value: string): readonly string[] | undefined;

// dist/fencing/http-problem.d.ts
import { type Fenced } from "./guard.ts";
export interface Problem {
    readonly type: string;
    readonly title: string;
    readonly status: 400 | 412 | 428 | 503;
    readonly detail: string;
    readonly resource?: string;
    readonly fence?: string;
    readonly seen?: string;
}
export declare const problemType = "application/problem+json";
export declare const staleType = "urn:holdfast:problem:stale-fence";
export declare function staleProblem(resource: string, fence: bigint, seen: bigint): Problem;
export declare function missingProblem(): Problem;
export declare function malformedProblem(detail: string): Problem;
export declare function busyProblem(resources: readonly string[], why: string): Problem;
export declare function problemResponse(problem: Problem): Response;
export declare function throwIfFenceRejected(response: Response, fenced: Fenced | bigint): Promise<void>;
