import { afterEach, beforeEach, expect, test } from "vitest";
import type { Lease, Locks } from "../../src/index.ts";
import { migrate } from "../../src/stores/postgres/index.ts";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { watchLeaks } from "../support/leaks.ts";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
const clients = new PostgresClients();

watchLeaks();

beforeEach(async () => {
  server = await startPostgres();
  const pool = clients.pool(server);
  await migrate(pool);
});

afterEach(async () => {
  await clients.close();
  await server.stop();
});

function once(locks: Locks, name: "doubtful" | "lost" | "node-replaced"): Promise<unknown> {
  return new Promise((resolve) => locks.on(name, resolve));
}

async function fenceOf(locks: Locks, resource: string): Promise<bigint> {
  const lease = await locks.acquire(resource, { wait: "20s" });
  await lease.release();
  return lease.fence;
}

test("a lease outlives a crash of the server, and fences grow", async () => {
  const locks = clients.locks(clients.pool(server), { timeout: 500 });
  const lease = await locks.acquire("crash", { ttl: "20s" });
  const before = await fenceOf(locks, "other");
  const replaced = once(locks, "node-replaced");
  await server.kill();
  await expect(lease.prove()).rejects.toMatchObject({ code: "STORE", fault: "unreachable" });
  expect(lease.state).toBe("doubtful");
  await server.restart();
  expect(await fenceOf(locks, "other")).toBeGreaterThan(before);
  await replaced;
  expect(await lease.prove()).toBe(true);
  expect(lease.state).toBe("held");
  expect(await lease.release()).toEqual({ released: true });
});

test("a renewed lease ends in time while the server is frozen", async () => {
  const locks = clients.locks(clients.pool(server), { timeout: 300 });
  const lease = await locks.acquire("frozen", { ttl: "1s", renew: true });
  const lost = once(locks, "lost");
  server.freeze();
  try {
    expect(await lost).toMatchObject({ reason: "unreachable" });
    await expect(locks.tryAcquire("other")).rejects.toMatchObject({ fault: "unreachable" });
  } finally {
    server.resume();
  }
  expect(lease.signal.aborted).toBe(true);
  // What the frozen server received late does not block the next holder for long.
  const next = await clients.locks(clients.pool(server)).acquire("other", { wait: "20s" });
  expect(next.state).toBe("held");
});

test("an attempt whose reply is lost leaves no lock behind", async () => {
  const locks = clients.locks(clients.pool(server), { timeout: 300 });
  await fenceOf(locks, "late");
  server.freeze();
  let attempts: readonly PromiseSettledResult<Lease | undefined>[];
  try {
    const names = ["late", "later", "latest"];
    attempts = await Promise.allSettled(names.map((name) => locks.tryAcquire(name)));
  } finally {
    server.resume();
  }
  expect(attempts.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const rival = clients.locks(clients.pool(server));
  // The TTL is 10 s: each is free long before, because its late grant is given back.
  for (const name of ["late", "later", "latest"]) {
    const lease = await rival.acquire(name, { wait: "8s" });
    expect(lease.state).toBe("held");
  }
});

test("fences do not fall when a copy without the latest grants is promoted", async () => {
  const primary = clients.locks(clients.pool(server));
  await fenceOf(primary, "promoted");
  const copy = await server.copy();
  try {
    let greatest = 0n;
    for (let hold = 0; hold < 200; hold += 1) greatest = await fenceOf(primary, "promoted");
    const pool = clients.pool(copy);
    const locks = clients.locks(pool);
    // As long as it is a standby, it grants nothing.
    await expect(locks.tryAcquire("promoted")).rejects.toMatchObject({ fault: "read-only" });
    await server.kill();
    await pool.query("SELECT pg_promote()");
    // The bare sequence would give smaller fences: the copy lacks what was drawn last.
    const sequence = "SELECT last_value FROM holdfast.fences";
    const [last] = (await pool.query<{ last_value: string }>(sequence)).rows;
    expect(BigInt(last?.last_value ?? 0)).toBeLessThan(greatest);
    expect(await fenceOf(locks, "promoted")).toBeGreaterThan(greatest);
  } finally {
    await clients.close();
    await copy.stop();
  }
});

test("a waiting call goes on when its session for notifications was ended", async () => {
  const pool = clients.pool(server);
  const [ours, theirs] = [clients.locks(pool), clients.locks(clients.pool(server))];
  const held = await ours.acquire("cut");
  const next = theirs.acquire("cut", { wait: "forever", retry: { maxDelay: "20s" } });
  const listening = async (): Promise<number | null> => {
    const text = "SELECT 1 FROM holdfast.queue WHERE channel IS NOT NULL";
    return (await pool.query(text)).rowCount;
  };
  while ((await listening()) === 0) await pool.query("SELECT pg_sleep(0.02)");
  await pool.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
  );
  await held.release();
  expect((await next).state).toBe("held");
});
