import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { fenceGuard, memoryFences } from "../../src/fencing/http.ts";
import { serve } from "../guards/http-servers.ts";

/** A stored value, and the fence that it was written with, as a text. */
export interface Held {
  readonly value: unknown;
  readonly fence: unknown;
}

/** An HTTP server that stores what is PUT: below `/guarded/` with the guard, elsewhere without. */
export interface Documents {
  readonly url: string;
  held(path: string): Held | undefined;
  /** Status codes of the responses for a path, in order. */
  statuses(path: string): readonly number[];
  close(): Promise<void>;
}

const guardedPath = "/guarded/";

export async function serveDocuments(): Promise<Documents> {
  const documents = new Map<string, Held>();
  const answers: { readonly path: string; readonly status: number }[] = [];
  const guard = fenceGuard({
    store: memoryFences(),
    // From the path, so that a client cannot choose the resource with which its fence is compared.
    resourceOf: ({ path }) => decodeURIComponent(path.slice(guardedPath.length)),
  });
  const put = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const fence = req.headers["holdfast-fence"];
    documents.set(pathOf(req), { value: await text(req), fence });
    res.writeHead(204).end();
  };
  const server = await serve((req, res) => {
    // A client that was stopped must not reuse a connection that was closed as idle.
    res.setHeader("connection", "close");
    res.once("finish", () => answers.push({ path: pathOf(req), status: res.statusCode }));
    const answered = pathOf(req).startsWith(guardedPath)
      ? guard.node(req, res, () => put(req, res))
      : put(req, res);
    answered.catch((error: unknown) => {
      res.writeHead(500).end(String(error));
    });
  });
  return {
    url: server.url,
    held: (path) => documents.get(path),
    statuses: (path) =>
      answers.filter((answer) => answer.path === path).map(({ status }) => status),
    close: () => server.close(),
  };
}

function pathOf(req: IncomingMessage): string {
  return decodeURIComponent(req.url ?? "/");
}
