import type { IncomingMessage } from "node:http";

/** Request data that the guard reads, independent of the HTTP framework. */
export interface GuardedRequest {
  readonly method: string;
  /** Path and query, as in `/invoices/42?draft=1`. */
  readonly path: string;
  header(name: string): string | undefined;
}

export function ofRequest(request: Request): GuardedRequest {
  const url = new URL(request.url);
  return {
    method: request.method,
    path: url.pathname + url.search,
    header: (name) => request.headers.get(name) ?? undefined,
  };
}

export function ofIncoming(req: IncomingMessage): GuardedRequest {
  // Express sets `originalUrl` to the full path; `url` lacks the mount path of the router.
  const { originalUrl } = req as { originalUrl?: unknown };
  return {
    method: req.method ?? "GET",
    path: typeof originalUrl === "string" ? originalUrl : (req.url ?? "/"),
    header: (name) => {
      const value = req.headers[name.toLowerCase()];
      return Array.isArray(value) ? value.join(", ") : value;
    },
  };
}
