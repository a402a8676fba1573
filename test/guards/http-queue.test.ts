import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { fenceGuard, memoryFences, withFence } from "../../src/fencing/http.ts";
import type { FenceGuard, FenceGuardOptions } from "../../src/fencing/http.ts";
import { type HttpServer, serve } from "./http-servers.ts";
import { leaseLike, rejectionOf } from "./lease-like.ts";

const opened: HttpServer[] = [];

afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

/** A server whose requests end when the test says so, and what happened on it. */
interface Scene {
  readonly url: string;
  readonly arrived: string[];
  readonly log: string[];
  readonly finish: (path: string) => void;
  readonly until: (list: readonly string[], entry: string) => Promise<void>;
}

async function open(options: Partial<FenceGuardOptions>): Promise<Scene> {
  const guard: FenceGuard = fenceGuard({ store: memoryFences(), ...options });
  const arrived: string[] = [];
  const log: string[] = [];
  const running = new Map<string, () => void>();
  const finished = new Set<string>();
  const server = await serve((req, res) => {
    const path = req.url ?? "";
    arrived.push(path);
    res.once("close", () => arrived.push(`${path} closed`));
    void guard.node(req, res, async () => {
      log.push(`start ${path}`);
      if (!finished.has(path)) {
        await new Promise<void>((resolve) => {
          running.set(path, resolve);
        });
      }
      log.push(`end ${path}`);
      res.end("done");
    });
  });
  opened.push(server);
  return {
    url: server.url,
    arrived,
    log,
    finish: (path) => {
      finished.add(path);
      running.get(path)?.();
    },
    until: async (list, entry) => {
      while (!list.includes(entry)) await setImmediate();
    },
  };
}

const put = (fence: bigint, ...resources: string[]): RequestInit =>
  withFence(leaseLike(fence, ...resources), { method: "PUT" });

describe("three requests that wait for a resource", () => {
  it("keep their order if the client of the middle one gives up", async () => {
    const { url, arrived, log, finish, until } = await open({});
    const running = fetch(`${url}/0`, put(1n));
    await until(log, "start /0");
    const gone = new AbortController();
    const first = fetch(`${url}/1`, put(2n));
    await until(arrived, "/1");
    const middle = rejectionOf(fetch(`${url}/2`, { ...put(3n), signal: gone.signal }));
    await until(arrived, "/2");
    const last = fetch(`${url}/3`, put(4n));
    await until(arrived, "/3");
    gone.abort();
    await until(arrived, "/2 closed");
    await middle;
    // Nothing starts before the request that runs has ended.
    expect(log).toEqual(["start /0"]);
    for (const path of ["/0", "/1", "/3"]) {
      await until(log, `start ${path}`);
      expect(log.at(-1)).toBe(`start ${path}`);
      finish(path);
    }
    const responses = await Promise.all([running, first, last]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(log).toEqual(["start /0", "end /0", "start /1", "end /1", "start /3", "end /3"]);
  });

  it("still wait for the running one after the one between them waited too long", async () => {
    const { url, arrived, log, finish, until } = await open({ queueTimeout: 300 });
    const running = fetch(`${url}/0`, put(1n));
    await until(log, "start /0");
    const middle = await fetch(`${url}/1`, put(2n));
    expect(middle.status).toBe(503);
    const last = fetch(`${url}/2`, put(3n));
    await until(arrived, "/2");
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    expect(log).toEqual(["start /0"]);
    finish("/2");
    finish("/0");
    expect((await running).status).toBe(200);
    expect([200, 503]).toContain((await last).status);
    expect(log.slice(0, 2)).toEqual(["start /0", "end /0"]);
  });
});

describe("a request about two resources", () => {
  const resourceOf = (): string[] => ["a", "b"];

  it("waits for the requests of both, and others wait for it", async () => {
    const { url, arrived, log, finish, until } = await open({
      resourceOf: ({ path }) => (path === "/both" ? ["b", "a"] : path.slice(1, 2)),
    });
    const [a, b] = [fetch(`${url}/a`, put(1n, "a")), fetch(`${url}/b`, put(1n, "b"))];
    await until(log, "start /a");
    await until(log, "start /b");
    const both = fetch(`${url}/both`, put(2n, "a", "b"));
    await until(arrived, "/both");
    const later = fetch(`${url}/b2`, put(3n, "b"));
    await until(arrived, "/b2");
    finish("/a");
    await a;
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    expect(log).not.toContain("start /both");
    finish("/b");
    await until(log, "start /both");
    expect(log).not.toContain("start /b2");
    finish("/both");
    finish("/b2");
    const responses = await Promise.all([b, both, later]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it("is refused if the fence of either is stale", async () => {
    for (const stale of ["a", "b"]) {
      const store = memoryFences();
      await store.admit(stale, 9n);
      const { url, log, finish } = await open({ resourceOf, store });
      finish("/x");
      const response = await fetch(`${url}/x`, put(8n, "a", "b"));
      expect(response.status).toBe(412);
      expect(await response.json()).toMatchObject({ resource: stale, seen: "9" });
      expect(log).toEqual([]);
      expect((await fetch(`${url}/x`, put(9n, "a", "b"))).status).toBe(200);
    }
  });

  it("is refused if the header does not name both", async () => {
    const { url, finish } = await open({ resourceOf });
    finish("/x");
    for (const named of [["a"], ["b"], ["a", "c"]]) {
      expect((await fetch(`${url}/x`, put(8n, ...named))).status).toBe(400);
    }
    expect((await fetch(`${url}/x`, put(8n, "c", "b", "a"))).status).toBe(200);
  });
});

describe("a request that gets 503", () => {
  it("is given a time to come back after, in both forms of the guard", async () => {
    const { url, log, finish, until } = await open({ maxQueue: 0 });
    const running = fetch(`${url}/0`, put(1n));
    await until(log, "start /0");
    const busy = await fetch(`${url}/1`, put(1n));
    expect([busy.status, busy.headers.get("retry-after")]).toEqual([503, "1"]);
    finish("/0");
    await running;
    const guard = fenceGuard({ store: memoryFences(), maxQueue: 0 });
    let end = (): void => undefined;
    const request = (): Request => new Request("http://localhost/", put(1n));
    const first = guard.handle(request(), async () => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return new Response();
    });
    await setImmediate();
    const second = await guard.handle(request(), () => new Response());
    expect([second.status, second.headers.get("retry-after")]).toEqual([503, "1"]);
    end();
    expect((await first).headers.get("retry-after")).toBeNull();
  });
});

describe("a handler of `node` that fails", () => {
  const fails: Readonly<Record<string, (res: { write: (text: string) => unknown }) => unknown>> = {
    throws: () => {
      throw new Error("out of order");
    },
    rejects: () => Promise.reject(new Error("out of order")),
    "rejects after it has begun to answer": (res) => {
      res.write("half");
      return Promise.reject(new Error("out of order"));
    },
  };

  it.each(Object.entries(fails))(
    "%s: the client gets an error, the work is not repeated, the next request is served",
    async (name, fail) => {
      const errors: unknown[] = [];
      let calls = 0;
      const guard = fenceGuard({
        store: memoryFences(),
        onError: (error) => errors.push(error),
      });
      const server = await serve((req, res) => {
        void guard.node(req, res, () => {
          calls += 1;
          if (req.url === "/fail") return fail(res);
          res.end("done");
          return Promise.resolve();
        });
      });
      opened.push(server);
      const answer = fetch(`${server.url}/fail`, put(7n)).then(async (response) => {
        await response.text();
        return response.status;
      });
      if (name.includes("begun")) expect(await rejectionOf(answer)).toBeInstanceOf(Error);
      else expect(await answer).toBe(500);
      expect(errors).toMatchObject([{ message: "out of order" }]);
      expect(calls).toBe(1);
      expect((await fetch(`${server.url}/next`, put(7n))).status).toBe(200);
    },
  );

  it("ends in a process warning if there is no `onError`", async () => {
    const warned = new Promise<Error>((resolve) => {
      process.once("warning", resolve);
    });
    const guard = fenceGuard({ store: memoryFences() });
    const server = await serve((req, res) => {
      void guard.node(req, res, () => Promise.reject(new Error("out of order")));
    });
    opened.push(server);
    expect((await fetch(server.url, put(7n))).status).toBe(500);
    expect((await warned).message).toBe("out of order");
  });
});
