import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { migrate, postgres, type PostgresQuery } from "../../src/stores/postgres/index.ts";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { watchLeaks } from "../support/leaks.ts";
import { PostgresClients } from "./postgres-locks.ts";

let server: PostgresServer;
const clients = new PostgresClients();

watchLeaks();

beforeAll(async () => {
  server = await startPostgres();
  await migrate(clients.pool(server));
  await clients.close();
});

afterEach(() => clients.close());
afterAll(() => server.stop());

/** Makes the server's clock look set forward, in the replies only. */
function shiftedClock(query: PostgresQuery): { query: PostgresQuery; shift: { ms: number } } {
  const shift = { ms: 0 };
  const shifted: PostgresQuery = async (text, params) => {
    const result = await query(text, params);
    const rows = "rows" in result ? result.rows : result;
    return rows.map((row) => {
      const { reply } = row as { reply?: unknown };
      if (typeof reply !== "string" || !reply.includes('"ms"')) return row;
      const parsed = JSON.parse(reply) as { ms: number };
      return { reply: JSON.stringify({ ...parsed, ms: parsed.ms + shift.ms }) };
    });
  };
  return { query: shifted, shift };
}

test("leases are lost if the server's clock was set forward, and the doctor names it", async () => {
  const pool = clients.pool(server);
  const { query, shift } = shiftedClock((text, params) => pool.query(text, params));
  const locks = createLocks(postgres(query));
  const jumps: number[] = [];
  locks.on("clock-jump", ({ stepMs }) => jumps.push(stepMs));
  const lease = await locks.acquire("stepped");
  await locks.inspect("stepped");
  shift.ms = -5_000;
  await locks.inspect("stepped");
  expect(lease.state).toBe("held");
  shift.ms = 60_000;
  await locks.inspect("stepped");
  expect(lease.state).toBe("lost");
  expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "clock" });
  expect(jumps.map((ms) => Math.round(ms / 1_000))).toEqual([-5, 65]);
  const findings = await locks.doctor();
  expect(findings.map(({ code }) => code)).toContain("clock-stepped");
  await locks.close();
});
