import { expect, test } from "vitest";
import { shardOf } from "../../src/stores/redis/commands/keys.ts";
import { eventually } from "../support/redis-eventually.ts";
import { connect, openLocks, shareRedis, watchConnection } from "../support/redis-harness.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

/** A lease that a quorum granted can be released before the grant of the last node arrives. */

const bench = shareRedis(3);
const key = "invoice:43";

/** Acquires and releases while the third node's replies are held back, then lets them arrive. */
async function giveBackEarly(options: {
  readonly ordered: boolean;
  readonly meanwhile?: () => Promise<unknown>;
}) {
  const proxy = await startTcpProxy(bench.server(2).port);
  const third = await connect(proxy.port);
  const others = [await connect(bench.server(0).port), await connect(bench.server(1).port)];
  // The driver promises no order for a watched connection.
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
  // In the order of the connection, all earlier replies have arrived by now, and their effects too.
  await third.ping();
  await third.ping();
  expect(await bench.server(2).command("EXISTS", key)).toBe(0);
  /** Number of releases by the owner's name, as sent for a late grant. */
  const again = proxy.countRequests(`\r\n${value.split("|")[0]}\r\n`) - 1;
  await bench.untilFree();
  return again;
}

test("a late grant is deleted by the release behind it, without another command", async () => {
  expect(await giveBackEarly({ ordered: true })).toBe(0);
});

test("a late grant is released once more if the driver promises no order", async () => {
  expect(await giveBackEarly({ ordered: false })).toBe(1);
});

test("a late grant is released once more if the release did not find it", async () => {
  const meanwhile = () => bench.server(2).command("DEL", key);
  expect(await giveBackEarly({ ordered: true, meanwhile })).toBe(1);
});

test("the fence of a late grant raises the proposals that come after it", async () => {
  const proxy = await startTcpProxy(bench.server(2).port);
  const others = [await connect(bench.server(0).port), await connect(bench.server(1).port)];
  const third = await connect(proxy.port);
  const locks = openLocks([...others, third], { nodeTimeout: "10s" });
  await bench.warmUp(locks);
  // Another client with a clock 40 s ahead has raised the counter of this resource on node 3.
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

test("the fence in a late refusal raises the proposals that come after it", async () => {
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
