import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { compileClockLibrary } from "../../faults/clock-library.ts";
import { NodeServer } from "../../faults/node-server.ts";
import { admit, openAdmitted, openStrict } from "../admission/strict-locks.ts";
import { projectRoot } from "../support/source-files.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { connect, openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import { startRedis } from "../../tools/redis/redis-server.mjs";
import { required } from "../support/requirements.ts";
import { Cluster } from "ioredis";
import { codesOf, diagnose, farAway, findingOf } from "./findings.ts";

/** Each finding about the nodes as a set, and about their admission, on real servers. */

const bench = shareRedis(3);

describe("the set of nodes", () => {
  test("one node gives a note, an even number a warning, an odd number neither", async () => {
    expect(await diagnose(await bench.locks(1), "single-node")).toMatchObject({ level: "info" });
    const two = await diagnose(await bench.locks(2), "even-nodes");
    expect(two).toMatchObject({ level: "warning", what: "there are 2 nodes" });
    const codes = await codesOf(await bench.locks(3));
    expect(codes).not.toContain("single-node");
    expect(codes).not.toContain("even-nodes");
  });

  test("reports the same server given twice", async () => {
    const ports = [0, 1, 0].map((index) => bench.server(index).port);
    const locks = openLocks(await Promise.all(ports.map((port) => connect(port))));
    const found = await diagnose(locks, "same-server");
    expect(found).toMatchObject({ level: "error" });
    expect(found.what).toBe("node-1 and node-3 are the same server");
    expect(String(await rejection(locks.acquire("a")))).toContain("the same server twice");
  });

  test("reports servers on one host, by the address at which they accept connections", async () => {
    const found = await diagnose(await bench.locks(3), "same-host");
    expect(found).toMatchObject({ level: "warning" });
    expect(found.what).toContain("node-1 and node-2 and node-3");
    expect(found.what).toContain("127.0.0.1");
  });

  test("servers at different addresses are not reported as being on one host", async () => {
    const args = ["--bind", "127.0.0.1", "127.0.0.2"];
    const elsewhere = await startRedis({ args });
    onTestFinished(() => elsewhere.stop());
    const far = await connect(elsewhere.port, { host: "127.0.0.2" });
    const locks = openLocks([await connect(bench.server(0).port), far]);
    expect(await codesOf(locks)).not.toContain("same-host");
  });

  test("reports that too few nodes can vote", async () => {
    const clients = await bench.connectAll();
    bench.freeze(1, 2);
    const locks = openLocks(clients);
    const found = await locks.doctor();
    expect(findingOf(found, "no-quorum").what).toBe("1 of 3 nodes can vote; 2 are needed");
    expect(found.filter(({ code }) => code === "unreachable")).toHaveLength(2);
    // The gravest findings come first.
    const levels = found.map(({ level }) => level);
    const ranks = levels.map((level) => ["error", "warning", "info"].indexOf(level));
    expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
  });
});

describe("the doctor on time", () => {
  test("reports round trips that nodeTimeout leaves little or no room for", async () => {
    const [near, other, third] = await bench.connectAll();
    if (near === undefined || other === undefined || third === undefined) throw new Error("three");
    const far = farAway(third, 150);
    const late = openLocks([near, other, far], { nodeTimeout: 100 });
    const found = await diagnose(late, "slow-node", "node-3");
    expect(found).toMatchObject({ level: "error" });
    expect(found.what).toContain("nodeTimeout is 100 ms");
    const tight = openLocks([near, other, far], { nodeTimeout: 200 });
    expect((await diagnose(tight, "slow-node", "node-3")).remedy).toContain("raise nodeTimeout");
  });

  test("reports round trips that are long compared with the TTL", async () => {
    const clients = await bench.connectAll();
    const far = clients.map((client) => farAway(client, 60));
    const locks = openLocks(far, { nodeTimeout: "5s" }, { ttl: 500 });
    const found = await diagnose(locks, "short-ttl");
    expect(found).toMatchObject({ level: "warning" });
    expect(found.what).toContain("the ttl is 500 ms");
    // A quorum of near nodes is enough.
    const [first, second] = clients;
    const last = far.at(-1);
    if (first === undefined || second === undefined || last === undefined) throw new Error("three");
    const near = openLocks([first, second, last], { nodeTimeout: "5s" }, { ttl: "20s" });
    expect(await codesOf(near)).not.toContain("short-ttl");
  });

  test("reports clocks that differ, of a node and of this client", async (context) => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-doctor-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const library = required(context, "gcc", compileClockLibrary(projectRoot, folder));
    const servers = await Promise.all(
      [1, 2, 3].map((number) => NodeServer.start(join(folder, String(number)), library)),
    );
    onTestFinished(async () => {
      await Promise.all(servers.map((server) => server.kill()));
    });
    const clients = await Promise.all(servers.map(({ port }) => connect(port)));
    const locks = openLocks(clients);
    const before = await codesOf(locks);
    expect(before).not.toContain("clock-offset");
    expect(before).not.toContain("client-clock-offset");

    servers[1]?.setClock(60_000);
    const ahead = await diagnose(locks, "clock-offset");
    expect(ahead).toMatchObject({ level: "warning", node: "node-2" });
    expect(ahead.what).toContain("60 s ahead of most of the others");
    servers[1]?.setClock(-60_000);
    expect((await diagnose(locks, "clock-offset")).what).toContain("60 s behind");

    // All nodes agree, and the clock of this client differs.
    for (const server of servers) server.setClock(-60_000);
    const found = await locks.doctor();
    expect(findingOf(found, "client-clock-offset").what).toContain("60 s ahead of");
    expect(found.map(({ code }) => code)).not.toContain("clock-offset");

    // A single node can only be compared with this client.
    const [client] = clients;
    if (client === undefined) throw new Error("three");
    const alone = await diagnose(openLocks([client]), "clock-offset");
    expect(alone.what).toContain("60 s behind the one of this client");
  });
});

describe("the doctor on admission", () => {
  test("reports fresh servers that may not vote yet", async () => {
    // So long that the servers have certainly not been up for it.
    const locks = await openStrict(bench, { maxTtl: "1h" }, { ttl: "1s" });
    const found = await locks.doctor();
    for (const node of ["node-1", "node-2", "node-3"]) {
      expect(findingOf(found, "node-blank", node)).toMatchObject({ level: "warning" });
    }
    expect(findingOf(found, "no-quorum").what).toContain("0 of 3 nodes can vote");
  });

  test("reports a server that came back without its data", async () => {
    await Promise.all(bench.servers.map((server) => admit(server)));
    const locks = await openStrict(bench, { maxTtl: "1h" }, { ttl: "1s" });
    await bench.server(2).command("HSET", "holdfast:node", "rid", "0".repeat(40));
    const found = await locks.doctor();
    const finding = findingOf(found, "node-quarantined");
    expect(finding).toMatchObject({ level: "warning", node: "node-3" });
    expect(finding.what).toMatch(/may not vote, for about \d+ s/);
    expect(found.map(({ code }) => code)).not.toContain("no-quorum");
    // The quarantine is as long as this client's maxTtl, which differs from the one in the records.
    const differing = found.filter(({ code }) => code === "max-ttl-mismatch");
    expect(differing.map(({ node }) => node)).toEqual(["node-1", "node-2", "node-3"]);
    expect(differing[0]?.what).toContain("maxTtl 1000 ms, this client's option 3600000 ms");
  });

  test("reports a node that was admitted by clocks alone", async () => {
    const locks = await openAdmitted(bench);
    await bench.server(0).command("HSET", "holdfast:node", "mode", "clock");
    const found = await diagnose(locks, "admitted-by-clock");
    expect(found).toMatchObject({ level: "info", node: "node-1" });
  });

  test("reports a node with another wire format", async () => {
    const locks = await openAdmitted(bench);
    await bench.server(1).command("HSET", "holdfast:node", "fmt", "0:other");
    const found = await diagnose(locks, "wire-format");
    expect(found).toMatchObject({ level: "error", node: "node-2" });
    expect(found.what).toContain("0:other");
  });

  test("writes nothing to a server", async () => {
    const locks = openLocks(await bench.connectAll());
    await locks.doctor();
    for (const server of bench.servers) expect(await server.command("KEYS", "*")).toEqual([]);
  });
});

test("a Cluster is examined on one of its nodes, by a user with the least rights", async () => {
  const cluster = await startRedisCluster(3);
  onTestFinished(() => cluster.stop());
  const page = readFileSync(join(projectRoot, "docs", "operate", "operations.md"), "utf8");
  const rules = /^ACL SETUSER locks (.+\+cluster.*)$/m.exec(page)?.[1]?.split(" ") ?? [];
  for (const node of cluster.nodes) {
    await node.command("ACL", "SETUSER", "locks", "reset", ...rules);
  }
  const login = { username: "locks", password: "secret" };
  const client = new Cluster(
    cluster.nodes.map(({ host, port }) => ({ host, port })),
    { redisOptions: { ...login, disconnectTimeout: 100 } },
  );
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  const locks = openLocks([client], { prefix: "lock:" });
  const found = await locks.doctor();
  expect(findingOf(found, "cluster-sampled")).toMatchObject({ level: "info" });
  const codes = found.map(({ code }) => code);
  expect(codes).not.toContain("no-quorum");
  expect(codes).not.toContain("permission-missing");
  expect(codes).not.toContain("probe-failed");
  for (const resource of ["a", "b", "c", "{tag}d", "odd}"]) {
    const lease = await locks.acquire(resource);
    await lease.extend();
    expect(await lease.release()).toEqual({ released: true });
  }
});
