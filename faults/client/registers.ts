import type { Redis } from "ioredis";
import type { Pool } from "pg";
import type { Fenced } from "../../src/fencing/guard.ts";
import { fencedUpdate } from "../../src/fencing/postgres.ts";
import { fencedGet, fencedSet } from "../../src/fencing/redis.ts";
import type { Register } from "../history.ts";
import { claim } from "./claim.ts";

/** Content of a register: the number of updates, and the last of them. */
export interface Content {
  readonly n: number;
  readonly op: string;
}

/**
 * A counter that is read, and written back after a while. A write over an update that its writer
 * has not seen loses that update, which the lock must prevent.
 */
export interface CounterRegister {
  readonly name: Register;
  /** With a fence it claims the register first, so that no older holder can write any more. */
  read(resource: string, fenced: Fenced | undefined): Promise<Content>;
  write(resource: string, fenced: Fenced | undefined, read: Content, op: string): Promise<void>;
}

const origin: Content = { n: 0, op: "origin" };

export const registerTableSql = `
CREATE TABLE register (
  name TEXT PRIMARY KEY, n BIGINT NOT NULL, op TEXT NOT NULL, base TEXT NOT NULL,
  fence BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE applied (
  id BIGSERIAL PRIMARY KEY, name TEXT NOT NULL, n BIGINT NOT NULL, op TEXT NOT NULL,
  base TEXT NOT NULL, fence BIGINT NOT NULL, fence_before BIGINT NOT NULL
);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO applied (name, n, op, base, fence, fence_before)
    VALUES (NEW.name, NEW.n, NEW.op, NEW.base, NEW.fence, OLD.fence);
  RETURN NEW;
END $$;
CREATE TRIGGER note AFTER UPDATE ON register FOR EACH ROW
  WHEN (OLD.op IS DISTINCT FROM NEW.op) EXECUTE FUNCTION note();`;

export function postgresRegister(
  pool: Pool,
  name: "postgres" | "postgres-fenced",
): CounterRegister {
  const rowOf = (resource: string): string => `${name}:${resource}`;
  return {
    name,
    async read(resource, fenced) {
      const where = { name: rowOf(resource) };
      if (fenced !== undefined) {
        await fencedUpdate(pool, fenced, { table: "register", where, set: {} });
      }
      const { rows } = await pool.query<{ n: string; op: string }>(
        "SELECT n, op FROM register WHERE name = $1",
        [where.name],
      );
      const [row] = rows;
      return row === undefined ? origin : { n: Number(row.n), op: row.op };
    },
    async write(resource, fenced, read, op) {
      const set = { n: read.n + 1, op, base: read.op };
      const where = { name: rowOf(resource) };
      if (fenced !== undefined) {
        await fencedUpdate(pool, fenced, { table: "register", where, set });
        return;
      }
      await pool.query("UPDATE register SET n = $1, op = $2, base = $3 WHERE name = $4", [
        set.n,
        set.op,
        set.base,
        where.name,
      ]);
    },
  };
}

export function redisRegister(client: Redis, name: "redis" | "redis-fenced"): CounterRegister {
  const keyOf = (resource: string): string => `${name}:${resource}`;
  return {
    name,
    async read(resource, fenced) {
      const key = keyOf(resource);
      if (fenced === undefined) return contentOf(await client.get(key));
      await claim(client, fenced, key, resource);
      return contentOf((await fencedGet(client, key))?.value ?? null);
    },
    async write(resource, fenced, read, op) {
      const key = keyOf(resource);
      const value = JSON.stringify({ n: read.n + 1, op, base: read.op });
      if (fenced === undefined) await client.set(key, value);
      else await fencedSet(client, fenced, key, value);
    },
  };
}

function contentOf(text: string | null): Content {
  return text === null ? origin : (JSON.parse(text) as Content);
}
