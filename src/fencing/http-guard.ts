import type { IncomingMessage, ServerResponse } from "node:http";
import { durationMs, type Duration } from "../core/time/durations.ts";
import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { resourcesOf } from "../core/resources.ts";
import type { FenceStore } from "./fence-store.ts";
import { isObject } from "./guard.ts";
import { fenceHeader, readFence, readResources, resourceHeader } from "./http-headers.ts";
import { Lanes } from "./http-lanes.ts";
import { aheadProblem, busyProblem, malformedProblem, missingProblem } from "./http-problem.ts";
import { headersOf, problemResponse, staleProblem, type Problem } from "./http-problem.ts";
import { ofIncoming, ofRequest, type GuardedRequest } from "./http-request.ts";
import { checkedMaxAhead, greatestPlausible } from "./plausible-fence.ts";
import type { FenceLimitOptions, MaxFenceAhead } from "./plausible-fence.ts";

export interface FenceGuardOptions extends FenceLimitOptions {
  readonly store: FenceStore;
  /**
   * Returns the resources of a request, for servers that do not trust the client's header. The
   * guard refuses a request whose header names other resources.
   * @default the resources in the Holdfast-Resource header
   */
  readonly resourceOf?: (request: GuardedRequest) => string | readonly string[];
  /**
   * Requests that must carry a fence. If any other request carries a fence, the guard checks it
   * too.
   * @default "writes": all methods but GET, HEAD, OPTIONS and TRACE
   */
  readonly required?: "always" | "writes" | "never";
  /** Limit for requests that wait for a resource; further requests get status 503. @default 1000 */
  readonly maxQueue?: number;
  /** Limit for the wait of a request for its resource; then it gets status 503. @default "30s" */
  readonly queueTimeout?: Duration;
  /**
   * Called with the error that a handler of `node` threw, or with which its promise rejected. The
   * guard has ended the response by then, with status 500 if possible.
   * @default a process warning with the stack
   */
  readonly onError?: (error: unknown) => void;
}

export interface FenceGuard {
  /**
   * Handler for servers that map a Request to a Response. Resolves to the response of `next`, or to
   * a problem document if the guard refuses.
   */
  handle(
    request: Request,
    next: (request: Request) => Response | Promise<Response>,
  ): Promise<Response>;
  /**
   * Handler for Node's `req, res`, Express and similar. Runs one request per resource at a time.
   * The next request starts when the promise returned by `next` settles or, if `next` returns no
   * promise, when the response has ended.
   *
   * If the handler throws or its promise rejects, the client gets status 500, or a broken
   * connection if the response has begun, and `onError` gets the error.
   */
  node(
    req: IncomingMessage,
    res: ServerResponse,
    next: (error?: unknown) => unknown,
  ): Promise<void>;
}

type Verdict =
  | { readonly kind: "refuse"; readonly problem: Problem }
  | { readonly kind: "pass"; readonly leave: () => void };

interface Settings {
  readonly store: FenceStore;
  readonly resourceOf: FenceGuardOptions["resourceOf"];
  readonly required: "always" | "writes" | "never";
  readonly lanes: Lanes;
  readonly maxFenceAhead: MaxFenceAhead | undefined;
  readonly onError: (error: unknown) => void;
}

/**
 * Returns middleware that refuses requests with a stale fence (status 412), without a fence (428),
 * or with a fence that is malformed or greater than `maxFenceAhead` allows (400). Each refusal is a
 * problem document.
 *
 * Use it behind authentication: if a client may send any fence, one great fence makes the guard
 * refuse all other clients, for as long as `maxFenceAhead`.
 *
 * Handles requests for one resource one after another, so that within this process they write in
 * the order in which they were admitted. If the store fails, the request is not handled: `handle`
 * rejects and `node` calls `next` with the error.
 */
export function fenceGuard(options: FenceGuardOptions): FenceGuard {
  const settings = settingsOf(options);
  return {
    handle: async (request, next) => {
      const verdict = await judge(settings, ofRequest(request));
      if (verdict.kind === "refuse") return problemResponse(verdict.problem);
      try {
        return await next(request);
      } finally {
        verdict.leave();
      }
    },
    node: async (req, res, next) => {
      let verdict: Verdict;
      try {
        verdict = await judge(settings, ofIncoming(req));
      } catch (error) {
        next(error);
        return;
      }
      if (verdict.kind === "refuse") sendProblem(res, verdict.problem);
      else await runNext(res, next, verdict.leave, settings.onError);
    },
  };
}

function settingsOf(options: FenceGuardOptions): Settings {
  const names = ["store", "resourceOf", "required", "maxQueue", "queueTimeout", "onError"];
  knownOptions("options", options, [...names, "maxFenceAhead"]);
  const { store, resourceOf, required = "writes", maxQueue = 1_000, queueTimeout } = options;
  if (!isObject(store) || typeof store["admit"] !== "function") {
    throw new InvalidOptionError("store", "a fence store with the method `admit`", store);
  }
  if (resourceOf !== undefined && typeof resourceOf !== "function") {
    throw new InvalidOptionError("resourceOf", "a function", resourceOf);
  }
  if (!["always", "writes", "never"].includes(required)) {
    throw new InvalidOptionError("required", '"always", "writes" or "never"', required);
  }
  if (!Number.isSafeInteger(maxQueue) || maxQueue < 0) {
    throw new InvalidOptionError("maxQueue", "a whole number of at least 0", maxQueue);
  }
  const { maxFenceAhead, onError = warn } = options;
  checkedMaxAhead(maxFenceAhead);
  if (typeof onError !== "function") throw new InvalidOptionError("onError", "a function", onError);
  const bounds = { minMs: 1, maxMs: 3_600_000 };
  const queueTimeoutMs = durationMs("queueTimeout", queueTimeout ?? "30s", bounds);
  const lanes = new Lanes({ maxQueue, queueTimeoutMs });
  return { store, resourceOf, required, lanes, maxFenceAhead, onError };
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

async function judge(settings: Settings, request: GuardedRequest): Promise<Verdict> {
  const given = request.header(fenceHeader);
  if (given === undefined) {
    const optional =
      settings.required === "never" ||
      (settings.required === "writes" && /^(GET|HEAD|OPTIONS|TRACE)$/.test(request.method));
    return optional
      ? { kind: "pass", leave: () => undefined }
      : { kind: "refuse", problem: missingProblem() };
  }
  const fence = readFence(given);
  if (fence === undefined) {
    return malformed(
      `${fenceHeader} must be a whole number from 1 to 2^63-1, without zeros before`,
    );
  }
  const resources = resourcesFor(settings, request);
  if (typeof resources === "string") return malformed(resources);
  const limit = greatestPlausible(settings.maxFenceAhead);
  if (limit !== undefined && fence > limit) {
    return { kind: "refuse", problem: aheadProblem(resources[0] ?? "", fence, limit) };
  }
  const entry = await settings.lanes.enter(resources);
  if (!entry.entered) return { kind: "refuse", problem: busyProblem(resources, entry.why) };
  try {
    for (const resource of resources) {
      const answer = await settings.store.admit(resource, fence);
      if (answer.accepted) continue;
      entry.leave();
      return { kind: "refuse", problem: staleProblem(resource, fence, answer.seen) };
    }
  } catch (error) {
    entry.leave();
    throw error;
  }
  return { kind: "pass", leave: entry.leave };
}

/** Returns the resources of the request, or a text with the reason why the header is invalid. */
function resourcesFor(settings: Settings, request: GuardedRequest): readonly string[] | string {
  const header = request.header(resourceHeader);
  const named = header === undefined ? undefined : readResources(header);
  if (header !== undefined && named === undefined) {
    return `${resourceHeader} must be percent-encoded names, separated by commas`;
  }
  if (settings.resourceOf === undefined) return named ?? `${resourceHeader} is missing`;
  const own = resourcesOf(settings.resourceOf(request));
  // Fences of different resources cannot be compared, so the header must name each resource of the
  // request.
  const agrees = named === undefined || own.every((resource) => named.includes(resource));
  return agrees ? own : `${resourceHeader} names another resource than this request is about`;
}

function malformed(detail: string): Verdict {
  return { kind: "refuse", problem: malformedProblem(detail) };
}

async function runNext(
  res: ServerResponse,
  next: () => unknown,
  leave: () => void,
  onError: (error: unknown) => void,
): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    res.once("finish", resolve);
    res.once("close", resolve);
  });
  try {
    // The client disconnected while its request waited: skip the request. The end events of the
    // response have already fired, so waiting for them would block the resource.
    if (res.destroyed) return;
    const returned = next();
    await (isThenable(returned) ? returned : ended);
  } catch (error) {
    // The error is not passed to `next`: a handler without a parameter for errors would handle the
    // request a second time.
    if (!res.headersSent) res.writeHead(500).end();
    else if (!res.writableEnded) res.destroy();
    onError(error);
  } finally {
    leave();
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof value["then"] === "function";
}

function sendProblem(res: ServerResponse, problem: Problem): void {
  res.writeHead(problem.status, headersOf(problem));
  res.end(JSON.stringify(problem));
}
