/** Fences over HTTP: headers for the client, a guard for the server. */

export type { Fenced } from "./guard.ts";
export { memoryFences } from "./fence-store.ts";
export type { Admission, FenceStore, MemoryFencesOptions } from "./fence-store.ts";
export type { LowerableFenceStore, LowerFenceOptions, LowerFenceResult } from "./lower-fence.ts";
export type { FenceLimitOptions, MaxFenceAhead } from "./plausible-fence.ts";
export { fenceHeader, fenceHeaders, resourceHeader, withFence } from "./http-headers.ts";
export type { FenceHeaderOptions } from "./http-headers.ts";
export { type Problem, throwIfFenceRejected } from "./http-problem.ts";
export { fenceGuard } from "./http-guard.ts";
export type { FenceGuard, FenceGuardOptions } from "./http-guard.ts";
export type { GuardedRequest } from "./http-request.ts";
