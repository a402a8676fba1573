/** Fences over HTTP: headers for the client, a guard for the server. */

export type { Fenced } from "./guard.ts";
export { memoryFences } from "./fence-store.ts";
export type { Admission, FenceStore, MemoryFencesOptions } from "./fence-store.ts";
export { fenceHeader, fenceHeaders, resourceHeader, withFence } from "./http-headers.ts";
export type { FenceHeaderOptions } from "./http-headers.ts";
export { type Problem, throwIfFenceRejected } from "./http-problem.ts";
export { fenceGuard } from "./http-guard.ts";
export type { FenceGuard, FenceGuardOptions, GuardedRequest } from "./http-guard.ts";
