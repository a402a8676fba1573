import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fenceGuard, fenceHeader, memoryFences } from "../../fencing/http.ts";
import type { AccountName, WriteEvent } from "./events.ts";

/** Bank of the demo. It keeps one account twice: `open` ignores fences, `guarded` checks them. */
export interface Bank {
  readonly url: string;
  balance(account: AccountName): number;
  close(): Promise<void>;
}

export interface BankOptions {
  readonly openingBalance: number;
  /** If false, `guarded` does not check fences, to test that the demo detects this. */
  readonly checkFences: boolean;
  onWrite(worker: string, write: WriteEvent): void;
}

export const workerHeader = "demo-worker";

/** Limit for a request body, which is one number. */
const bodyCharactersMax = 100;

/** Time for which an idle connection stays open, long enough for a frozen worker. */
const keepAliveMs = 120_000;

/** Serves `GET` and `PUT` of `/open` and `/guarded`; the body is the balance. */
export async function openBank(options: BankOptions): Promise<Bank> {
  const balances = { open: options.openingBalance, guarded: options.openingBalance };
  const guard = fenceGuard({ store: memoryFences() });
  let greatestFence = "0";

  const record = (req: IncomingMessage, write: Omit<WriteEvent, "kind" | "fence">): void =>
    options.onWrite(String(req.headers[workerHeader]), {
      kind: "write",
      fence: fenceIn(req),
      ...write,
    });

  const get = async (account: AccountName, res: ServerResponse): Promise<void> => {
    res.end(String(balances[account]));
  };

  const put = async (account: AccountName, req: IncomingMessage, res: ServerResponse) => {
    const after = await bodyOf(req);
    const before = balances[account];
    balances[account] = after;
    record(req, { account, answer: "accepted", before, after });
    res.writeHead(204).end();
  };

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const account = accountOf(req);
    const known = req.method === "GET" || req.method === "PUT";
    if (account === undefined || !known) {
      res.writeHead(404).end();
      return;
    }
    const answer = (): Promise<void> =>
      req.method === "GET" ? get(account, res) : put(account, req, res);
    if (account === "open" || !options.checkFences) {
      await answer();
      return;
    }
    await guard.node(req, res, async () => {
      greatestFence = fenceIn(req);
      await answer();
    });
    if (res.statusCode !== 412 || req.method === "GET") return;
    const { guarded } = balances;
    const unchanged = { before: guarded, after: guarded, seen: greatestFence };
    record(req, { account, answer: "refused", ...unchanged });
  };

  const server = createServer({ keepAliveTimeout: keepAliveMs }, (req, res) => {
    serve(req, res).catch((error: unknown) => {
      if (!res.headersSent) res.writeHead(500);
      res.end(String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    balance: (account) => balances[account],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function accountOf({ url }: IncomingMessage): AccountName | undefined {
  return url === "/open" ? "open" : url === "/guarded" ? "guarded" : undefined;
}

function fenceIn({ headers }: IncomingMessage): string {
  return String(headers[fenceHeader.toLowerCase()]);
}

async function bodyOf(req: IncomingMessage): Promise<number> {
  let text = "";
  for await (const chunk of req) {
    text += String(chunk);
    if (text.length > bodyCharactersMax) throw new Error("the body is too long");
  }
  const balance = Number(text);
  if (text === "" || !Number.isSafeInteger(balance)) throw new Error(`${text} is no balance`);
  return balance;
}
