import { expect, test } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import { collect, connect, openLocks, shareRedis } from "../support/redis-harness.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

const bench = shareRedis(2);
const key = "invoice:42";

// A replica that is promoted may have the key, but not the extension that came after it.
test.each([{ fencing: true }, { fencing: false }])(
  "a proof on a promoted replica restores the life of the key (fencing $fencing)",
  async ({ fencing }) => {
    const proxy = await startTcpProxy(bench.server(0).port);
    const locks = openLocks([await connect(proxy.port)], { fencing });
    const proven = collect(locks, "node-replaced");
    const lease = await locks.acquire(key, { ttl: "12s", renew: false });
    const [value] = await bench.values(key);
    await bench.server(1).command("SET", key, String(value), "PX", "9000");
    proxy.target = bench.server(1).port;
    proxy.reset();
    await eventually(() => proven.length > 0 && lease.state === "held");
    const lifeMs = Number(await bench.server(1).command("PTTL", key));
    expect(lifeMs).toBeGreaterThan(lease.remainingMs());
    await lease.release();
    await bench.server(0).command("DEL", key);
    await bench.untilFree();
  },
);
