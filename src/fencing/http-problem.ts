import { FenceAheadError } from "../core/fence-ahead-error.ts";
import { fenceOf, isObject, rejection, subjectOf, type Fenced } from "./guard.ts";

/** Problem document (RFC 9457). Fences are strings because JSON numbers are doubles. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: 400 | 412 | 428 | 503;
  readonly detail: string;
  readonly resource?: string;
  readonly fence?: string;
  readonly seen?: string;
  readonly limit?: string;
}

export const problemType = "application/problem+json";
export const staleType = "urn:holdfast:problem:stale-fence";
const aheadType = "urn:holdfast:problem:fence-ahead";
/**
 * Pause that a client should make before it repeats a request. A short pause is enough, because the
 * queue gets shorter with each request that ends.
 */
const retryAfterSeconds = 1;

export function staleProblem(resource: string, fence: bigint, seen: bigint): Problem {
  return {
    type: staleType,
    title: "The fence is stale",
    status: 412,
    detail: `fence ${fence} for "${resource}" is stale: fence ${seen} was seen`,
    resource,
    fence: String(fence),
    seen: String(seen),
  };
}

export function missingProblem(): Problem {
  return {
    type: "urn:holdfast:problem:fence-required",
    title: "A fence is required",
    status: 428,
    detail: "this request needs the header Holdfast-Fence, and Holdfast-Resource to go with it",
  };
}

export function malformedProblem(detail: string): Problem {
  return {
    type: "urn:holdfast:problem:malformed-fence",
    title: "The fence is malformed",
    status: 400,
    detail,
  };
}

export function aheadProblem(resource: string, fence: bigint, limit: bigint): Problem {
  return {
    type: aheadType,
    title: "The fence is implausibly far ahead of the clock",
    status: 400,
    detail: new FenceAheadError(resource, fence, limit).message,
    resource,
    fence: String(fence),
    limit: String(limit),
  };
}

export function busyProblem(resources: readonly string[], why: string): Problem {
  return {
    type: "urn:holdfast:problem:busy",
    title: "Too many requests wait for this resource",
    status: 503,
    detail: why,
    resource: resources.join(", "),
  };
}

/** Returns the headers of the response. For status 503 they contain the pause before a retry. */
export function headersOf(problem: Problem): Record<string, string> {
  const type = { "content-type": problemType };
  return problem.status === 503 ? { ...type, "retry-after": String(retryAfterSeconds) } : type;
}

export function problemResponse(problem: Problem): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: headersOf(problem),
  });
}

/**
 * Throws FenceRejectedError if a guarded server replied that the fence is stale. Throws
 * FenceAheadError if it replied that the fence is greater than its `maxFenceAhead` allows. Returns
 * for any other response, including a 412 with another reason. The response body stays unread.
 */
export async function throwIfFenceRejected(
  response: Response,
  fenced: Fenced | bigint,
): Promise<void> {
  if (response.status !== 412 && response.status !== 400) return;
  if (!(response.headers.get("content-type") ?? "").startsWith(problemType)) return;
  const problem = await readProblem(response.clone());
  if (problem === undefined) return;
  const { type, resource: named, seen, limit } = problem;
  const resource = typeof named === "string" ? named : subjectOf(fenced, undefined, response.url);
  const fence = fenceOf(fenced);
  if (type === aheadType && response.status === 400) {
    throw new FenceAheadError(resource, fence, fenceIn(limit) ?? 0n);
  }
  if (type !== staleType || response.status !== 412) return;
  throw rejection(fenced, { resource, fence, seen: fenceIn(seen), guard: "http" });
}

function fenceIn(value: unknown): bigint | undefined {
  return typeof value === "string" && /^\d{1,19}$/.test(value) ? BigInt(value) : undefined;
}

async function readProblem(response: Response): Promise<Record<PropertyKey, unknown> | undefined> {
  try {
    const body: unknown = await response.json();
    return isObject(body) ? body : undefined;
  } catch {
    // The body was cut off or is not JSON, so it does not report a stale fence.
    return undefined;
  }
}
