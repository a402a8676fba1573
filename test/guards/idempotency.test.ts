import type { Pool } from "pg";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { UnsupportedError } from "../../src/core/errors.ts";
import { idempotencyKey } from "../../src/fencing/idempotency.ts";
import { fenceColumnSql, fencedUpdate } from "../../src/fencing/postgres.ts";
import { shareDatabases } from "./databases.ts";
import { type HttpServer, serve } from "./http-servers.ts";
import { leaseLike, unfencedLease } from "./lease-like.ts";

describe("an idempotency key", () => {
  it("is the same for the same lease and purpose, in any order of the resources", () => {
    const key = idempotencyKey(leaseLike(7n, "b", "a"), "charge");
    expect(key).toBe("7.charge.a.b");
    expect(idempotencyKey(leaseLike(7n, "a", "b"), "charge")).toBe(key);
    expect(idempotencyKey(leaseLike(7n))).toBe("7.~.invoice~3a42");
  });

  it("differs for every other resource, fence and purpose", () => {
    const keys = [
      idempotencyKey(leaseLike(7n, "a")),
      idempotencyKey(leaseLike(8n, "a")),
      idempotencyKey(leaseLike(7n, "A")),
      idempotencyKey(leaseLike(7n, "a", "b")),
      idempotencyKey(leaseLike(7n, "a.b")),
      idempotencyKey(leaseLike(7n, "a"), "b"),
      idempotencyKey(leaseLike(7n, "b"), "a"),
      idempotencyKey(leaseLike(7n, "a"), "~"),
      idempotencyKey(leaseLike(7n, "a~2eb")),
      idempotencyKey(leaseLike(7n, "l".repeat(100))),
      idempotencyKey(leaseLike(7n, "l".repeat(101))),
      idempotencyKey(leaseLike(7n, "🔒".repeat(50))),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of keys) expect(key).toMatch(/^[A-Za-z0-9._~-]{1,64}$/);
  });

  it("refuses a lease without a fence, and an empty purpose", () => {
    expect(() => idempotencyKey(unfencedLease())).toThrow(UnsupportedError);
    expect(() => idempotencyKey(leaseLike(2n ** 63n))).toThrow("`fence`");
    expect(() => idempotencyKey(leaseLike(1n), "")).toThrow("`purpose`");
    expect(() => idempotencyKey(1n as never)).toThrow("`resource`");
  });
});

describe("the recipe for services that cannot be fenced", () => {
  const databases = shareDatabases("postgres");
  let pool: Pool;
  let provider: HttpServer | undefined;

  beforeAll(() => {
    pool = databases.postgresPool;
  });

  afterEach(async () => {
    await provider?.close();
    provider = undefined;
  });

  /** Opens a typical payment provider: it knows no fences, but remembers idempotency keys. */
  async function openProvider(): Promise<{ charges: string[]; url: string }> {
    const charges: string[] = [];
    const answered = new Map<string, string>();
    provider = await serve((req, res) => {
      const key = String(req.headers["idempotency-key"]);
      let answer = answered.get(key);
      if (answer === undefined) {
        charges.push(key);
        answer = `charge ${charges.length}`;
        answered.set(key, answer);
      }
      res.end(answer);
    });
    return { charges, url: provider.url };
  }

  const charge = async (url: string, key: string): Promise<string> =>
    await (await fetch(url, { method: "POST", headers: { "idempotency-key": key } })).text();

  it("makes the retries of one lease a single charge", async () => {
    const { charges, url } = await openProvider();
    const key = idempotencyKey(leaseLike(7n), "charge");
    const answers = await Promise.all([charge(url, key), charge(url, key), charge(url, key)]);
    expect(answers).toEqual(["charge 1", "charge 1", "charge 1"]);
    expect(charges).toEqual([key]);
  });

  it("makes the charges of all leases a single one if the key is kept in a fenced row", async () => {
    const { charges, url } = await openProvider();
    await pool.query("CREATE TABLE invoice (id INT PRIMARY KEY, charge_key TEXT)");
    await pool.query("INSERT INTO invoice VALUES (42)");
    await pool.query(fenceColumnSql("invoice"));
    const row = { table: "invoice", where: { id: 42 } };

    const pay = async (fence: bigint): Promise<string> => {
      const lease = leaseLike(fence);
      const found = await pool.query<{ charge_key: string | null }>(
        "SELECT charge_key FROM invoice WHERE id = 42",
      );
      const key = found.rows[0]?.charge_key ?? idempotencyKey(lease, "charge");
      // Fenced, so that a stale holder stops here. Kept, so that the next holder repeats this
      // charge.
      await fencedUpdate(pool, lease, { ...row, set: { charge_key: key } });
      return await charge(url, key);
    };

    expect(await pay(7n)).toBe("charge 1");
    expect(await pay(8n)).toBe("charge 1");
    await expect(pay(7n)).rejects.toMatchObject({ code: "FENCE_REJECTED", seen: 8n });
    expect(charges).toEqual(["7.charge.invoice~3a42"]);
  });

  it("makes a unique column accept each step of a lease once", async () => {
    await pool.query("CREATE TABLE mail (key TEXT PRIMARY KEY, text TEXT)");
    const insert = async (fence: bigint, purpose: string): Promise<number | null> => {
      const key = idempotencyKey(leaseLike(fence), purpose);
      const { rowCount } = await pool.query(
        "INSERT INTO mail VALUES ($1, 'hello') ON CONFLICT (key) DO NOTHING",
        [key],
      );
      return rowCount;
    };
    const counts = await Promise.all([insert(7n, "mail"), insert(7n, "mail"), insert(7n, "bill")]);
    expect(counts.map(Number).reduce((sum, count) => sum + count)).toBe(2);
    expect(counts[2]).toBe(1);
    expect(await insert(8n, "mail")).toBe(1);
  });
});
