import { Cluster } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NotConnectedError } from "../../src/clients/contract.ts";
import { hashSlot } from "../../src/clients/hash-slot.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { allKinds, ioredisKinds, nodeRedisKinds } from "./client-kinds.ts";
import { adapt, subscribed } from "./open-connection.ts";

let cluster: RedisCluster;
let ports: readonly number[];

beforeAll(async () => {
  cluster = await startRedisCluster();
  ports = cluster.nodes.map((node) => node.port);
});
beforeEach(async () => {
  await Promise.all(cluster.nodes.map((node) => node.command("FLUSHALL")));
});
afterAll(() => cluster.stop());

const resources = Array.from({ length: 40 }, (_, index) => `resource-${index}`);
const script =
  "redis.call('SET', KEYS[1], ARGV[1]); redis.call('SET', KEYS[2], 'x'); return KEYS[1]";

test.each(["", "foo", "{user}:a", "a{}b", "a{}{b}", "{{b}}", "a{b", "}a{b}", "ключ{鍵}🔒"])(
  "the computed slot of the key %j is the same as the server's",
  async (key) => {
    expect(hashSlot(key)).toBe(await cluster.nodes[0]?.command("CLUSTER", "KEYSLOT", key));
  },
);

describe.each(allKinds)("$name", (kind) => {
  test("routes each command to the node that owns its keys", async () => {
    const connection = adapt(await kind.openCluster(ports));
    expect(connection.topology).toBe("cluster");
    await eventually(() => connection.send("k", ["SET", "k", "x"]));
    const send = (resource: string) => {
      const keys = [`lock:{${resource}}`, `fence:{${resource}}`];
      return connection.send(`lock:{${resource}}`, ["EVAL", script, "2", ...keys, resource]);
    };
    const replies = await Promise.all(resources.map(send));
    expect(replies).toEqual(resources.map((resource) => `lock:{${resource}}`));
    for (const resource of resources) {
      const owner = await cluster.nodeOf(`lock:{${resource}}`);
      expect(await owner.command("GET", `lock:{${resource}}`)).toBe(resource);
    }
  });

  test("replies with NOSCRIPT if the node that owns the slot does not have the script", async () => {
    const connection = adapt(await kind.openCluster(ports));
    const sent = connection.send("some", ["EVALSHA", "0".repeat(40), "1", "some"]);
    await expect(sent).rejects.toThrow(/^NOSCRIPT /);
  });

  test("rejects if its client was closed", async () => {
    const opened = await kind.openCluster(ports);
    const connection = adapt(opened);
    await opened.close();
    await expect(connection.send("k", ["SET", "k", "x"])).rejects.toThrow(NotConnectedError);
  });
});

describe.each(allKinds)("$name", (kind) => {
  test("subscribes to sharded channels on the nodes that own them", async () => {
    const connection = adapt(await kind.openCluster(ports));
    const received: string[] = [];
    const channels = resources.slice(0, 10).map((resource) => `wake:{${resource}}`);
    const leaves = await Promise.all(
      channels.map((channel) => subscribed(connection, channel, () => received.push(channel))),
    );
    for (const channel of channels) {
      await (await cluster.nodeOf(channel)).command("SPUBLISH", channel, "x");
    }
    await eventually(() => received.length >= channels.length);
    expect(received.sort()).toEqual(channels.sort());
    await Promise.all(leaves.map((leave) => leave()));
    await eventually(async () => (await shardChannels()) === 0);
  });
});

async function shardChannels(): Promise<number> {
  const ask = cluster.nodes.map((node) => node.command("PUBSUB", "SHARDCHANNELS"));
  return ((await Promise.all(ask)) as unknown[][]).flat().length;
}

describe.each(ioredisKinds)("$name", (kind) => {
  test("applies the user's keyPrefix before it routes", async () => {
    const connection = adapt(
      await kind.openCluster(ports, { redisOptions: { keyPrefix: "app:" } }),
    );
    await connection.send("solo", ["EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "solo"]);
    expect(await (await cluster.nodeOf("app:solo")).command("GET", "app:solo")).toBe("x");
  });

  test("routes by key with the user's auto-pipelining too", async () => {
    const connection = adapt(await kind.openCluster(ports, { enableAutoPipelining: true }));
    const set = "return redis.call('SET', KEYS[1], 'x')";
    await Promise.all(resources.map((key) => connection.send(key, ["EVAL", set, "1", key])));
    for (const key of resources) {
      expect(await (await cluster.nodeOf(key)).command("EXISTS", key)).toBe(1);
    }
  });
});

test("a lazy cluster is woken with the command that it refuses", async () => {
  const client = new Cluster([{ host: "127.0.0.1", port: ports[0] ?? 0 }], { lazyConnect: true });
  const connection = adapt({ client, close: () => client.disconnect() });
  await expect(connection.send("k", ["SET", "early", "x"])).rejects.toThrow(NotConnectedError);
  expect(await eventually(() => connection.send("k", ["SET", "k", "x"]))).toBe("OK");
  expect(await (await cluster.nodeOf("early")).command("EXISTS", "early")).toBe(0);
});

describe.each(nodeRedisKinds)("$name", (kind) => {
  test("connects to a node of a minimised cluster with the command that it refuses", async () => {
    const connection = adapt(await kind.openCluster(ports, { minimizeConnections: true }));
    const send = () => connection.send("early", ["SET", "early", "x"]);
    await expect(send()).rejects.toThrow(NotConnectedError);
    expect(await eventually(send)).toBe("OK");
  });

  test("refuses the slots of a node that is down and serves the others", async () => {
    const connection = adapt(await kind.openCluster(ports));
    const [down, up] = cluster.nodes;
    if (down === undefined || up === undefined) throw new Error("the cluster has too few nodes");
    const keyOf = async (node: typeof down) => {
      for (const key of resources) if ((await cluster.nodeOf(key)) === node) return key;
      throw new Error("no resource lives there");
    };
    const lost = await keyOf(down);
    const kept = await keyOf(up);
    await down.kill();
    await eventually(async () => {
      const error = await connection.send(lost, ["PING"]).catch((e: unknown) => e);
      return error instanceof NotConnectedError;
    });
    const late = connection.send(lost, ["SET", lost, "late"]);
    await expect(late).rejects.toThrow(NotConnectedError);
    expect(await connection.send(kept, ["SET", kept, "x"])).toBe("OK");
    await down.restart();
    await eventually(() => connection.send(lost, ["SET", `recovered:{${lost}}`, "x"]));
    expect(await down.command("EXISTS", lost)).toBe(0);
  });
});

test("a cluster of node-redis 6 applies the user's keyPrefix", async () => {
  const kind = nodeRedisKinds.find(({ name }) => name === "node-redis 6");
  const opened = await kind?.openCluster(ports, { keyPrefix: "app:" });
  if (opened === undefined) throw new Error("node-redis 6 is not among the kinds");
  await adapt(opened).send("solo", ["EVAL", "redis.call('SET', KEYS[1], 'x')", "1", "solo"]);
  expect(await (await cluster.nodeOf("app:solo")).command("GET", "app:solo")).toBe("x");
});
