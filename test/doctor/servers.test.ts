import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import { connect, dial, openLocks, shareRedis } from "../support/redis-harness.ts";
import { codesOf, configure, diagnose, disguised } from "./findings.ts";

/** Each finding about one server, provoked on a real server. */

const bench = shareRedis(2, ["--enable-debug-command", "yes"]);

describe("the doctor on memory", () => {
  test.each(["allkeys-lru", "volatile-ttl"])(
    "reports that %s with a limit can evict locks",
    async (policy) => {
      const settings = { maxmemory: "100mb", "maxmemory-policy": policy };
      await configure(bench.server(0), settings);
      const found = await diagnose(await bench.locks(1), "eviction");
      expect(found).toMatchObject({ level: "warning", node: "redis" });
      expect(found.what).toContain(policy);
      expect(found.what).toContain("100 MB");
      expect(found.remedy).toContain("noeviction");
    },
  );

  test("gives a note for a policy that evicts locks if memory has no limit", async () => {
    await configure(bench.server(0), { "maxmemory-policy": "allkeys-lru" });
    const found = await diagnose(await bench.locks(1), "eviction-possible");
    expect(found.level).toBe("info");
  });

  test("reports a server that is full and does not evict", async () => {
    const locks = await bench.locks(1);
    await configure(bench.server(0), { maxmemory: "1mb" });
    expect(await diagnose(locks, "memory-full")).toMatchObject({ level: "warning" });
  });
});

describe("the doctor on replication", () => {
  async function replicate(): Promise<void> {
    const [master, replica] = [bench.server(0), bench.server(1)];
    await configure(master, { "repl-diskless-sync-delay": "0" });
    await replica.command("REPLICAOF", master.host, String(master.port));
    onTestFinished(async () => {
      await replica.command("REPLICAOF", "NO", "ONE");
    });
    await eventually(async () =>
      String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
    );
  }

  test("reports a replica used as a master, and notes a master with a replica", async () => {
    await replicate();
    const toReplica = openLocks([await connect(bench.server(1).port)]);
    const found = await toReplica.doctor();
    expect(found.map(({ code }) => code)).toEqual(expect.arrayContaining(["replica", "no-quorum"]));
    // Reported once, and not again as a refused write.
    expect(found.map(({ code }) => code)).not.toContain("writes-refused");
    expect(found.find(({ code }) => code === "replica")).toMatchObject({ level: "error" });
    const toMaster = await bench.locks(1);
    expect(await diagnose(toMaster, "replicas")).toMatchObject({ level: "info" });
  });

  test("reports a master that wants more replicas than it has", async () => {
    await configure(bench.server(0), { "min-replicas-to-write": "1" });
    const locks = await bench.locks(1);
    const found = await diagnose(locks, "writes-refused");
    expect(found).toMatchObject({ level: "error" });
    expect(found.what).toContain("NOREPLICAS");
    expect(found.remedy).toContain("min-replicas-to-write");
    expect(await codesOf(locks)).toContain("no-quorum");
  });
});

test("the doctor reports a server that is loading its data", async () => {
  const server = bench.server(0);
  const locks = await bench.locks(1);
  const fill = "for i = 1, 400 do redis.call('SET', 'k' .. i, string.rep('x', 4096)) end";
  await server.command("EVAL", fill, "0");
  onTestFinished(async () => {
    await server.command("FLUSHALL");
  });
  await server.command("CONFIG", "SET", "loading-process-events-interval-bytes", "1024");
  // Loads each key slowly, so that the server is still loading when the doctor looks.
  await server.command("CONFIG", "SET", "key-load-delay", "50000");
  const reloaded = server.command("DEBUG", "RELOAD");
  reloaded.catch(() => undefined);
  onTestFinished(async () => {
    await eventually(() => server.command("CONFIG", "SET", "key-load-delay", "0"));
    await eventually(async () => (await server.command("PING")) === "PONG");
    await reloaded.catch(() => undefined);
  });
  await eventually(async () =>
    String(await server.command("INFO", "persistence")).includes("\nloading:1"),
  );
  expect(await diagnose(locks, "loading")).toMatchObject({ level: "warning" });
});

describe("the doctor on persistence", () => {
  test("reports a server without persistence, because a restart forgets every lock", async () => {
    const found = await diagnose(await bench.locks(1), "persistence-off");
    expect(found).toMatchObject({ level: "warning" });
  });

  test("reports a server with snapshots only", async () => {
    await configure(bench.server(0), { save: "3600 1" });
    const found = await diagnose(await bench.locks(1), "persistence-snapshots");
    expect(found.what).toContain("3600 1");
  });

  test("notes an append-only file that lags behind, and accepts one that does not", async () => {
    await configure(bench.server(0), { appendonly: "yes" });
    const locks = await bench.locks(1);
    const found = await diagnose(locks, "persistence-lagging");
    expect(found).toMatchObject({ level: "info", what: "appendfsync is everysec" });
    await configure(bench.server(0), { appendfsync: "always" });
    expect((await codesOf(locks)).filter((code) => code.startsWith("persistence"))).toEqual([]);
  });

  test("gives only a note with admission, because a restart then costs no lock", async () => {
    const locks = await bench.locks(1, { admission: "strict" });
    expect(await diagnose(locks, "persistence-off")).toMatchObject({ level: "info" });
  });
});

describe("the doctor on connections", () => {
  test("reports a node without a server", async () => {
    const locks = openLocks([dial(1), await connect(bench.server(0).port)]);
    const found = await diagnose(locks, "unreachable");
    expect(found).toMatchObject({ level: "error", node: "node-1" });
    expect(found.what).toContain("not connected");
  });

  test("reports a frozen server", async () => {
    const locks = await bench.locks(2);
    bench.freeze(1);
    const found = await locks.doctor();
    expect(found.filter(({ node }) => node === "node-2")).toEqual([
      expect.objectContaining({ code: "unreachable", level: "error" }),
    ]);
    expect(found.find(({ code }) => code === "no-quorum")?.what).toContain("1 of 2");
  });

  test("reports a client without the password", async () => {
    const client = await connect(bench.server(0).port, { enableReadyCheck: false });
    // Before this, no password was needed. A connection from before keeps its rights.
    await bench.server(0).command("CONFIG", "SET", "requirepass", "secret");
    const admin = await connect(bench.server(0).port, { password: "secret" });
    onTestFinished(async () => {
      await admin.config("SET", "requirepass", "");
    });
    const stranger = dial(bench.server(0).port, { enableReadyCheck: false });
    await eventually(() => stranger.status === "ready");
    const found = await diagnose(openLocks([stranger]), "unauthenticated");
    expect(found).toMatchObject({ level: "error" });
    expect(found.what).toContain("NOAUTH");
    expect(await codesOf(openLocks([client]))).not.toContain("unauthenticated");
  });

  test("gives a client that was just created time to connect", async () => {
    const locks = openLocks([dial(bench.server(0).port)]);
    expect(await codesOf(locks)).not.toContain("unreachable");
  });
});

test("the doctor reports old versions, here of a server with a changed INFO", async () => {
  const client = await connect(bench.server(0).port);
  const as = (version: string) =>
    openLocks([disguised(client, (info) => info.replace(/redis_version:\S+/, version))]);
  const old = await diagnose(as("redis_version:5.0.14"), "version-too-old");
  expect(old).toMatchObject({ level: "error", what: "the server's version is 5.0.14" });
  const six = await diagnose(as("redis_version:6.2.6"), "version-before-7");
  expect(six).toMatchObject({ level: "info" });
  const valkey = as("redis_version:7.2.4\r\nvalkey_version:8.0.1");
  expect((await codesOf(valkey)).filter((code) => code.startsWith("version"))).toEqual([]);
});

test("a healthy server with appendfsync always gives one finding: it is a single node", async () => {
  await configure(bench.server(0), { appendonly: "yes", appendfsync: "always" });
  const locks = await bench.locks(1);
  await (await locks.acquire("a")).release();
  const codes = await codesOf(locks);
  expect(codes.filter((code) => code !== "event-loop-stall")).toEqual(["single-node"]);
});
