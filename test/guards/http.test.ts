import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { FenceRejectedError, StoreError, UnsupportedError } from "../../src/core/errors.ts";
import { fenceGuard, fenceHeaders, memoryFences } from "../../src/fencing/http.ts";
import { throwIfFenceRejected, withFence } from "../../src/fencing/http.ts";
import type { FenceGuard, FenceGuardOptions, FenceStore } from "../../src/fencing/http.ts";
import { type HttpServer, serve, serveFetch } from "./http-servers.ts";
import { leaseLike, rejectionOf, shuffledFences, unfencedLease } from "./lease-like.ts";

const opened: HttpServer[] = [];

afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

type Work = (path: string) => Promise<void> | void;

/** The same guarded server in each form of the guard. */
const forms: readonly (readonly [
  string,
  (guard: FenceGuard, work: Work) => Promise<HttpServer>,
])[] = [
  [
    "Request and Response",
    (guard, work) =>
      serveFetch((request) =>
        guard.handle(request, async ({ url }) => {
          await work(new URL(url).pathname);
          return new Response("done");
        }),
      ),
  ],
  [
    "req and res with a promise",
    (guard, work) =>
      serve((req, res) => {
        void guard.node(req, res, async (error) => {
          if (error === undefined) await work(req.url ?? "");
          answer(res, error);
        });
      }),
  ],
  [
    "req and res with a callback",
    (guard, work) =>
      serve((req, res) => {
        void guard.node(req, res, (error) => {
          if (error === undefined) void workThenAnswer(work, req.url ?? "", res);
          else answer(res, error);
        });
      }),
  ],
];

async function workThenAnswer(work: Work, path: string, res: ServerResponse): Promise<void> {
  await work(path);
  answer(res, undefined);
}

function answer(res: ServerResponse, error: unknown): void {
  res.statusCode = error === undefined ? 200 : 500;
  res.end(error instanceof Error ? error.message : "done");
}

const put = (init: RequestInit = {}): RequestInit => ({ method: "PUT", ...init });

describe.each(forms)("the HTTP guard on %s", (_, open) => {
  async function guarded(
    work: Work = () => undefined,
    options: Partial<FenceGuardOptions> = {},
  ): Promise<string> {
    const all = { store: memoryFences(), maxFenceAhead: "unlimited", ...options } as const;
    const server = await open(fenceGuard(all), work);
    opened.push(server);
    return server.url;
  }

  it("accepts equal and greater fences, and answers 412 to a smaller one", async () => {
    const written: string[] = [];
    const url = await guarded((path) => void written.push(path));
    for (const fence of [7n, 7n, 9_007_199_254_740_993n]) {
      const response = await fetch(`${url}/${fence}`, withFence(leaseLike(fence), put()));
      expect(response.status).toBe(200);
      await throwIfFenceRejected(response, leaseLike(fence));
      expect(await response.text()).toBe("done");
    }
    const stale = leaseLike(9_007_199_254_740_992n);
    const response = await fetch(`${url}/late`, withFence(stale, put()));
    expect(response.status).toBe(412);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(await rejectionOf(throwIfFenceRejected(response, stale))).toMatchObject({
      code: "FENCE_REJECTED",
      fence: 9_007_199_254_740_992n,
      seen: 9_007_199_254_740_993n,
      resources: ["invoice:42"],
    });
    expect(stale.rejections).toMatchObject([{ guard: "http", resource: "invoice:42" }]);
    expect(await response.json()).toEqual({
      type: "urn:holdfast:problem:stale-fence",
      title: "The fence is stale",
      status: 412,
      detail: 'fence 9007199254740992 for "invoice:42" is stale: fence 9007199254740993 was seen',
      resource: "invoice:42",
      fence: "9007199254740992",
      seen: "9007199254740993",
    });
    expect(written).toEqual(["/7", "/7", "/9007199254740993"]);
  });

  it("accepts any resource name, and several", async () => {
    const url = await guarded();
    const names = ["Straße 🔒, a", "b%2C", "c\nd"];
    const send = (fence: bigint, ...resources: string[]): Promise<Response> =>
      fetch(url, withFence(leaseLike(fence, ...resources), put()));
    expect((await send(5n, ...names)).status).toBe(200);
    for (const name of names) {
      const response = await send(4n, name);
      expect(response.status).toBe(412);
      expect(await response.json()).toMatchObject({ resource: name, seen: "5" });
    }
    expect((await send(4n, "b,")).status).toBe(200);
  });

  it("answers 428 to a write without a fence, and lets a read pass", async () => {
    const url = await guarded();
    const response = await fetch(url, put());
    expect(response.status).toBe(428);
    expect(await response.json()).toMatchObject({ status: 428, title: "A fence is required" });
    expect((await fetch(url)).status).toBe(200);
    const always = await guarded(undefined, { required: "always" });
    expect((await fetch(always)).status).toBe(428);
    const never = await guarded(undefined, { required: "never" });
    expect((await fetch(never, put())).status).toBe(200);
  });

  it("answers 400 to headers that are malformed", async () => {
    const url = await guarded();
    const good = fenceHeaders(leaseLike(7n));
    for (const fence of ["", "0", "-1", "07", "1.5", "1e3", "x", "9223372036854775808", "7, 8"]) {
      const headers = { ...good, "Holdfast-Fence": fence };
      const response = await fetch(url, put({ headers }));
      expect(response.status).toBe(400);
      expect(response.headers.get("content-type")).toBe("application/problem+json");
    }
    for (const resource of ["", "%", "%ff", "a,,b", "a".repeat(9_000)]) {
      const headers = { ...good, "Holdfast-Resource": resource };
      expect((await fetch(url, put({ headers }))).status).toBe(400);
    }
    const headers = { "Holdfast-Fence": "7" };
    expect((await fetch(url, put({ headers }))).status).toBe(400);
  });

  it("lets the server decide which resource a request is about", async () => {
    const url = await guarded(undefined, { resourceOf: ({ path }) => path.slice(1) });
    const send = (path: string, fence: string, resource?: string): Promise<Response> => {
      const headers = { "Holdfast-Fence": fence };
      const named =
        resource === undefined ? headers : { ...headers, "Holdfast-Resource": resource };
      return fetch(`${url}/${path}`, put({ headers: named }));
    };
    expect((await send("a", "7")).status).toBe(200);
    expect((await send("b", "6", "b")).status).toBe(200);
    expect((await send("a", "6")).status).toBe(412);
    expect((await send("a", "9", "b")).status).toBe(400);
    expect((await send("a", "9", "b,a")).status).toBe(200);
  });

  it("handles the requests of one resource one after another, in rising order", async () => {
    const written: string[] = [];
    let running = 0;
    let most = 0;
    const url = await guarded(async (path) => {
      running += 1;
      most = Math.max(most, running);
      for (let turn = 0; turn < 5; turn += 1) await setImmediate();
      written.push(path.slice(1));
      running -= 1;
    });
    const fences = shuffledFences(40, 7);
    const responses = await Promise.all(
      fences.map((fence) => fetch(`${url}/${fence}`, withFence(leaseLike(fence, "one"), put()))),
    );
    expect(most).toBe(1);
    const accepted = written.map(Number);
    expect(accepted).toEqual(accepted.toSorted((a, b) => a - b));
    expect(accepted.at(-1)).toBe(40);
    const passed = responses.filter((response) => response.status === 200);
    expect(passed).toHaveLength(accepted.length);
  });

  it("handles a greater fence only after the smaller one before it has ended", async () => {
    const order: string[] = [];
    let finishFirst = (): void => undefined;
    const firstStarted = new Promise<void>((started) => {
      finishFirst = started;
    });
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const url = await guarded(async (path) => {
      order.push(`start ${path}`);
      if (path === "/7") {
        finishFirst();
        await released;
      }
      order.push(`end ${path}`);
    });
    const older = fetch(`${url}/7`, withFence(leaseLike(7n), put()));
    await firstStarted;
    const newer = fetch(`${url}/8`, withFence(leaseLike(8n), put()));
    // A request for another resource does not wait.
    expect((await fetch(`${url}/x`, withFence(leaseLike(1n, "x"), put()))).status).toBe(200);
    release();
    expect((await older).status).toBe(200);
    expect((await newer).status).toBe(200);
    expect(order.filter((entry) => !entry.endsWith("/x"))).toEqual([
      "start /7",
      "end /7",
      "start /8",
      "end /8",
    ]);
  });

  it("answers 503 if too many requests wait, or one waits for too long", async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let started = (): void => undefined;
    const isStarted = new Promise<void>((resolve) => {
      started = resolve;
    });
    const work = async (): Promise<void> => {
      started();
      await released;
    };
    const url = await guarded(work, { maxQueue: 1, queueTimeout: 50 });
    const send = (): Promise<Response> => fetch(url, withFence(leaseLike(7n), put()));
    const first = send();
    await isStarted;
    const others = await Promise.all([send(), send()]);
    expect(others.map(({ status }) => status)).toEqual([503, 503]);
    release();
    expect((await first).status).toBe(200);
    expect((await send()).status).toBe(200);
  });

  it("does not handle a request if the store fails", async () => {
    const written: string[] = [];
    const store: FenceStore = { admit: () => Promise.reject(new StoreError("out of reach")) };
    const url = await guarded((path) => void written.push(path), { store });
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const response = await fetch(url, withFence(leaseLike(7n), put()));
      expect(response.status).toBe(500);
      expect(await response.text()).toContain("out of reach");
    }
    expect(written).toEqual([]);
  });
});

describe("the HTTP guard on req and res", () => {
  it("continues with the next request if a client disconnects while it waits or is served", async () => {
    const written: string[] = [];
    const arrived = new Set<string>();
    const ended = new Set<string>();
    const guard = fenceGuard({ store: memoryFences() });
    const server = await serve((req, res) => {
      const path = req.url ?? "";
      arrived.add(path);
      res.once("close", () => ended.add(path));
      void guard.node(req, res, () => {
        written.push(path);
        // The first request is never answered, so only its end frees the resource.
        if (path !== "/first") res.end("done");
      });
    });
    opened.push(server);
    const first = new AbortController();
    const second = new AbortController();
    const send = (path: string, signal: AbortSignal | null): Promise<Response> =>
      fetch(`${server.url}${path}`, { ...withFence(leaseLike(7n), put()), signal });
    const until = async (set: Set<string>, path: string): Promise<void> => {
      while (!set.has(path)) await setImmediate();
    };
    const firstGone = rejectionOf(send("/first", first.signal));
    await until(arrived, "/first");
    const secondGone = rejectionOf(send("/second", second.signal));
    await until(arrived, "/second");
    second.abort();
    await until(ended, "/second");
    first.abort();
    expect((await send("/third", null)).status).toBe(200);
    expect(written).toEqual(["/first", "/third"]);
    await Promise.all([firstGone, secondGone]);
  });
});

describe("the client's side of the HTTP guard", () => {
  it("adds to the given headers, in each of their forms", () => {
    for (const headers of [{ accept: "x" }, [["accept", "x"]], new Headers({ accept: "x" })]) {
      const init = withFence(7n, { headers: headers as never }, { resource: "a b" });
      expect(Object.fromEntries(new Headers(init.headers))).toEqual({
        accept: "x",
        "holdfast-fence": "7",
        "holdfast-resource": "a%20b",
      });
    }
  });

  it("refuses values that it cannot send", () => {
    expect(() => fenceHeaders(unfencedLease())).toThrow(UnsupportedError);
    expect(() => fenceHeaders(2n ** 63n, { resource: "a" })).toThrow("`fence`");
    expect(() => fenceHeaders(1n)).toThrow("`resource`");
    expect(() => fenceHeaders(1n, { resource: "\ud800" })).toThrow("`resource`");
    expect(() => fenceHeaders(1n, { resource: "ß".repeat(4_000) })).toThrow("`resource`");
    expect(() => fenceHeaders(1n, { resourc: "a" } as never)).toThrow('"resourc"');
  });

  it("ignores every other response, and does not read its body", async () => {
    const problem = (type: string, body: string, status = 412): Response =>
      new Response(body, { status, headers: { "content-type": type } });
    const stale = '{"type":"urn:holdfast:problem:stale-fence"}';
    for (const response of [
      problem("text/plain", stale),
      problem("application/problem+json", "{"),
      problem("application/problem+json", "null"),
      problem("application/problem+json", '{"type":"about:blank"}'),
      problem("application/problem+json", stale, 409),
    ]) {
      await throwIfFenceRejected(response, leaseLike(1n));
      expect(response.bodyUsed).toBe(false);
    }
    const bare = problem("application/problem+json; charset=utf-8", stale);
    const error = await rejectionOf(throwIfFenceRejected(bare, leaseLike(1n)));
    expect(error).toBeInstanceOf(FenceRejectedError);
    expect(error).toMatchObject({ seen: undefined, resources: ["invoice:42"] });
  });

  it.each([
    ["no store", {}, "store"],
    ["a store without admit", { store: {} }, "store"],
    ["an unknown option", { store: memoryFences(), storr: 1 }, "storr"],
    ["resourceOf", { store: memoryFences(), resourceOf: "a" }, "resourceOf"],
    ["required", { store: memoryFences(), required: true }, "required"],
    ["maxQueue", { store: memoryFences(), maxQueue: -1 }, "maxQueue"],
    ["queueTimeout", { store: memoryFences(), queueTimeout: 0 }, "queueTimeout"],
  ])("refuses a guard with a bad option: %s", (_, options, option) => {
    const named = new RegExp(`[\`"]${option}[\`"]`);
    expect(() => fenceGuard(options as never)).toThrow(named);
  });
});
