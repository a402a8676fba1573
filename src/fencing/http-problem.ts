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
}

export const problemType = "application/problem+json";
export const staleType = "urn:holdfast:problem:stale-fence";

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

export function busyProblem(resources: readonly string[], why: string): Problem {
  return {
    type: "urn:holdfast:problem:busy",
    title: "Too many requests wait for this resource",
    status: 503,
    detail: why,
    resource: resources.join(", "),
  };
}

export function problemResponse(problem: Problem): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { "content-type": problemType },
  });
}

/**
 * Throws FenceRejectedError if a guarded server replied that the fence is stale. Returns for any
 * other response, including a 412 with another reason. The response body stays unread.
 */
export async function throwIfFenceRejected(
  response: Response,
  fenced: Fenced | bigint,
): Promise<void> {
  if (response.status !== 412) return;
  if (!(response.headers.get("content-type") ?? "").startsWith(problemType)) return;
  const problem = await readProblem(response.clone());
  if (problem === undefined || problem["type"] !== staleType) return;
  const { resource, seen } = problem;
  throw rejection(fenced, {
    resource: typeof resource === "string" ? resource : subjectOf(fenced, undefined, response.url),
    fence: fenceOf(fenced),
    seen: typeof seen === "string" && /^\d{1,19}$/.test(seen) ? BigInt(seen) : undefined,
    guard: "http",
  });
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
