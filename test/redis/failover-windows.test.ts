import { expect, test } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import { collect, openLocks, shareRedis, watchConnection } from "../support/redis-harness.ts";

const bench = shareRedis(1);

test.each([{ fencing: true }, { fencing: false }])(
  "a server that was demoted and promoted again between two surveys is noticed (fencing $fencing)",
  async ({ fencing }) => {
    const [client] = await bench.connectAll(1);
    if (client === undefined) throw new Error("no client");
    const connection = watchConnection(client);
    const locks = openLocks([connection], { fencing });
    const replaced = collect(locks, "node-replaced");
    const doubtful = collect(locks, "doubtful");
    const lease = await locks.acquire("a", { renew: false });
    // While a lock is held, the server is surveyed at an interval that depends on the shortest TTL.
    await (await locks.acquire("quick", { ttl: 400, renew: false })).release();
    const looks = (): number => connection.sent.filter(([name]) => name === "INFO").length;
    const before = looks();
    await eventually(() => looks() >= before + 2);
    // At each survey the server has the same process, data and role.
    await bench.server(0).command("REPLICAOF", "127.0.0.1", "1");
    await bench.server(0).command("REPLICAOF", "NO", "ONE");
    await eventually(() => replaced.some(({ why }) => why.includes("another replication id")));
    expect(doubtful.length).toBeGreaterThan(0);
    await eventually(() => lease.state === "held");
    expect(await lease.release()).toEqual({ released: true });
    await bench.untilFree();
  },
);
