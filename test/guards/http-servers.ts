import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/** A real HTTP server on a free loopback port. */
export interface HttpServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function serve(listener: RequestListener): Promise<HttpServer> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Serves functions of `Request → Response`, as fetch-style frameworks do. */
export function serveFetch(handle: (request: Request) => Promise<Response>): Promise<HttpServer> {
  return serve((req, res) => {
    const answer = async (): Promise<void> => {
      const headers = new Headers();
      for (const [name, value] of Object.entries(req.headers)) headers.set(name, String(value));
      const url = `http://${req.headers.host}${req.url}`;
      const response = await handle(new Request(url, { method: req.method ?? "GET", headers }));
      res.writeHead(response.status, Object.fromEntries(response.headers));
      res.end(await response.text());
    };
    answer().catch((error: unknown) => {
      res.writeHead(500);
      res.end(String(error));
    });
  });
}
