// @ts-check
/** The writes of a client process: to each target once with its guard and once without. */

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";
import mysql from "mysql2/promise";
import { Pool } from "pg";

/** @typedef {import("./client-plan.ts").ClientPlan} ClientPlan */
/** @typedef {import("./client-plan.ts").Outcomes} Outcomes */
/** @typedef {import("../../src/index.ts").Lease} Lease */
/** @typedef {Awaited<ReturnType<typeof loadPackage>>} Package */
/** @typedef {Awaited<ReturnType<typeof connect>>} Connections */

/**
 * Loads the built package through the `exports` of its manifest, as a user would.
 *
 * @param {string} folder
 */
export async function loadPackage(folder) {
  const { resolve } = createRequire(join(folder, "package.json"));
  /** @param {string} specifier @returns {Promise<any>} */
  const load = (specifier) => import(pathToFileURL(resolve(specifier)).href);
  return {
    /** @type {typeof import("../../src/index.ts")} */
    root: await load("holdfast"),
    /** @type {typeof import("../../src/stores/redis/index.ts")} */
    stores: await load("holdfast/redis"),
    /** @type {typeof import("../../src/fencing/postgres.ts")} */
    postgres: await load("holdfast/fencing/postgres"),
    /** @type {typeof import("../../src/fencing/mysql.ts")} */
    mysql: await load("holdfast/fencing/mysql"),
    /** @type {typeof import("../../src/fencing/redis.ts")} */
    redis: await load("holdfast/fencing/redis"),
    /** @type {typeof import("../../src/fencing/http.ts")} */
    http: await load("holdfast/fencing/http"),
  };
}

/**
 * Opens what the writes need before there is a lease, so that only the writes come after it.
 *
 * @param {ClientPlan} plan
 */
export async function connect({ addresses }) {
  const postgres = new Pool({ ...addresses.postgres, max: 1 });
  const mariadb = mysql.createPool({ ...addresses.mariadb, connectionLimit: 1 });
  const register = new Redis({ host: "127.0.0.1", port: addresses.registerPort });
  await Promise.all([postgres.query("SELECT 1"), mariadb.query("SELECT 1"), register.ping()]);
  const close = async () => {
    await Promise.all([postgres.end(), mariadb.end(), register.quit()]);
  };
  return { postgres, mariadb, register, url: addresses.url, close };
}

/**
 * Writes the plan's value to every target. Throws any failure except a refusal by a guard.
 *
 * @param {Package} holdfast
 * @param {Connections} to
 * @param {ClientPlan} plan
 * @param {Lease} lease
 * @returns {Promise<Outcomes>}
 */
export async function writeAll(holdfast, to, plan, lease) {
  const writes =
    plan.writes === "guarded" ? guardedWrites(holdfast, to, plan, lease) : plainWrites(to, plan);
  /** @type {Record<string, import("./client-plan.ts").Outcome>} */
  const outcomes = {};
  for (const [place, write] of Object.entries(writes)) {
    try {
      await write();
      outcomes[place] = { kind: "written" };
    } catch (error) {
      if (!(error instanceof holdfast.root.FenceRejectedError)) throw error;
      outcomes[place] = {
        kind: "refused",
        error: error.name,
        resources: error.resources,
        fence: String(error.fence),
        seen: String(error.seen),
      };
    }
  }
  return outcomes;
}

/**
 * @param {Package} holdfast
 * @param {Connections} to
 * @param {ClientPlan} plan
 * @param {Lease} lease
 * @returns {Record<string, () => Promise<unknown>>}
 */
function guardedWrites(holdfast, to, { resource, value }, lease) {
  const update = { table: "invoice", set: { note: value }, where: { id: resource } };
  return {
    "postgres row": () => holdfast.postgres.fencedUpdate(to.postgres, lease, update),
    "postgres guard table": async () => {
      const client = await to.postgres.connect();
      try {
        await client.query("BEGIN");
        await holdfast.postgres.guardFence(client, lease);
        await client.query("UPDATE ledger SET note = $1 WHERE id = $2", [value, resource]);
        await client.query("COMMIT");
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      } finally {
        client.release();
      }
    },
    "mariadb row": () => holdfast.mysql.fencedUpdate(to.mariadb, lease, update),
    "mariadb guard table": async () => {
      const connection = await to.mariadb.getConnection();
      try {
        await connection.beginTransaction();
        await holdfast.mysql.guardFence(connection, lease);
        await connection.query("UPDATE ledger SET note = ? WHERE id = ?", [value, resource]);
        await connection.commit();
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        connection.release();
      }
    },
    redis: () => holdfast.redis.fencedSet(to.register, lease, `guarded:${resource}`, value),
    http: async () => {
      const url = `${to.url}/guarded/${encodeURIComponent(resource)}`;
      const init = holdfast.http.withFence(lease, { method: "PUT", body: value });
      const response = await fetch(url, init);
      await holdfast.http.throwIfFenceRejected(response, lease);
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
    },
  };
}

/**
 * @param {Connections} to
 * @param {ClientPlan} plan
 * @returns {Record<string, () => Promise<unknown>>}
 */
function plainWrites(to, { resource, value }) {
  return {
    postgres: () =>
      to.postgres.query("UPDATE invoice SET unguarded = $1 WHERE id = $2", [value, resource]),
    mariadb: () =>
      to.mariadb.query("UPDATE invoice SET unguarded = ? WHERE id = ?", [value, resource]),
    redis: () => to.register.set(`plain:${resource}`, value),
    http: async () => {
      const url = `${to.url}/plain/${encodeURIComponent(resource)}`;
      const response = await fetch(url, { method: "PUT", body: value });
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
    },
  };
}
