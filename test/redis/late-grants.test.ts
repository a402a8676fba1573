import { expect, test } from "vitest";
import { shardOf } from "../../src/stores/redis/quorum/shards.ts";
import { eventually } from "../support/redis-eventually.ts";
import { connect, openLocks, shareRedis, watchConnection } from "../support/redis-harness.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

/** A lease that others granted can be given back before the last node has told of its grant. */

const bench = shareRedis(3);
const key = "invoice:43";

/** Takes and gives back while the third node's answers are on their way, then lets them come. */
async function giveBackEarly(options: {
  readonly ordered: boolean;
  readonly meanwhile?: () => Promise<unknown>;
}) {
  const proxy = await startTcpProxy(bench.server(2).port);
  const third = await connect(proxy.port);
  const others = [await connect(bench.server(0).port), await connect(bench.server(1).port)];
  // A watched connection promises no order.
  const last = options.ordered ? third : watchConnection(third);
  const locks = openLocks([...others, last], { nodeTimeout: "10s" });
  await bench.warmUp(locks);
  proxy.replies = "hold";
  const lease = await locks.acquire(key, { ttl: "20s" });
  await eventually(async () => (await bench.server(2).command("EXISTS", key)) === 1);
  const value = String(await bench.server(2).command("GET", key));
  await options.meanwhile?.();
  expect(await lease.release()).toEqual({ released: true });
  await eventually(() => proxy.countRequests(`\r\n${value}\r\n`) > 0);
  proxy.replies = "pass";
  // One connection, one order: all answers have come by then, and what they led to has run.
  await third.ping();
  await third.ping();
  expect(await bench.server(2).command("EXISTS", key)).toBe(0);
  /** How often its grant was given back by its owner's name, as a late one is. */
  const again = proxy.countRequests(`\r\n${value.split("|")[0]}\r\n`) - 1;
  await bench.untilFree();
  return again;
}

test("a late grant goes back by the release behind it, without another word", async () => {
  expect(await giveBackEarly({ ordered: true })).toBe(0);
});

test("it is given back once more where the driver promises no order", async () => {
  expect(await giveBackEarly({ ordered: false })).toBe(1);
});

test("it is given back once more where that release did not find it", async () => {
  const meanwhile = () => bench.server(2).command("DEL", key);
  expect(await giveBackEarly({ ordered: true, meanwhile })).toBe(1);
});

test("the fence of a late grant lifts the proposals that come after it", async () => {
  const proxy = await startTcpProxy(bench.server(2).port);
  const others = [await connect(bench.server(0).port), await connect(bench.server(1).port)];
  const third = await connect(proxy.port);
  const locks = openLocks([...others, third], { nodeTimeout: "10s" });
  await bench.warmUp(locks);
  // Another client whose clock is 40 s ahead has raised the counter of this resource there.
  const aheadUs = (Date.now() + 40_000) * 1_000;
  await bench.server(2).command("HSET", "holdfast:node", String(shardOf(key)), String(aheadUs));
  proxy.replies = "hold";
  const lease = await locks.acquire(key, { ttl: "20s" });
  expect(lease.fence).toBeLessThan(BigInt(aheadUs));
  await eventually(async () => (await bench.server(2).command("EXISTS", key)) === 1);
  proxy.replies = "pass";
  await third.ping();
  const other = await locks.acquire("another", { ttl: "20s" });
  expect(other.fence).toBeGreaterThan(BigInt(aheadUs));
  await Promise.all([lease.release(), other.release()]);
  await bench.untilFree();
});

test("the fence that a late refusal names lifts the proposals that come after it", async () => {
  const proxy = await startTcpProxy(bench.server(2).port);
  const others = [await connect(bench.server(0).port), await connect(bench.server(1).port)];
  const third = await connect(proxy.port);
  const locks = openLocks([...others, third], { nodeTimeout: "10s" });
  await bench.warmUp(locks);
  const aheadUs = (Date.now() + 40_000) * 1_000;
  await bench.server(2).command("SET", key, `hf:${"A".repeat(22)}-1|${aheadUs}`, "PX", "60000");
  proxy.replies = "hold";
  const lease = await locks.acquire(key, { ttl: "20s" });
  proxy.replies = "pass";
  await third.ping();
  const other = await locks.acquire("another", { ttl: "20s" });
  expect(other.fence).toBeGreaterThan(BigInt(aheadUs));
  await Promise.all([lease.release(), other.release()]);
  await bench.server(2).command("DEL", key);
  await bench.untilFree();
});
