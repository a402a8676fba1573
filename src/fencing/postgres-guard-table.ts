import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { admission } from "./fence-store.ts";
import { guardTableDefault, guardTableHint } from "./guard-table.ts";
import type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
import { guardKey, guardedResources, parseFence, rejection, type Fenced } from "./guard.ts";
import { sqlState } from "./driver-errors.ts";
import { lowerEach, type LowerableFenceStore } from "./lower-fence.ts";
import { onPostgresTable } from "./missing-table.ts";
import { plausibleFence } from "./plausible-fence.ts";
import { postgresMs, type PostgresDatabase, queryOf, quotedTable } from "./postgres-query.ts";
import type { RunQuery } from "./postgres-query.ts";
import { tableParts } from "./sql-row.ts";

/**
 * Checks and stores the fence in the guard table, for rows that cannot carry a fence column. Call
 * it in an open transaction, before the other statements. The guard row stays locked until commit,
 * so no holder of another fence writes between the check and your writes.
 *
 * Rejects with FenceRejectedError if the fence is stale: roll the transaction back then. Rejects
 * with FenceAheadError if the fence is greater than `maxFenceAhead` allows, and with
 * InvalidOptionError outside a transaction, where the lock would end at once. Under REPEATABLE READ
 * and SERIALIZABLE a concurrent guard rejects with the server's error 40001.
 */
export async function guardFence(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  options: GuardFenceOptions = {},
): Promise<void> {
  knownOptions("options", options, ["table", "resource", "maxFenceAhead"]);
  const table = tableParts(options.table ?? guardTableDefault);
  const query = queryOf(db);
  const resources = guardedResources(fenced, options.resource);
  const clock = (): Promise<number> => postgresMs(query);
  const fence = await plausibleFence(fenced, resources[0] ?? "", options.maxFenceAhead, clock);
  await withTableHint(table, async () => {
    // LOCK TABLE takes the same table lock as the INSERT below, but fails outside a transaction
    // (25P01).
    await query(`LOCK TABLE ${quotedTable(table)} IN ROW EXCLUSIVE MODE`, []);
  });
  const greatest = await raise(query, table, resources, fence);
  for (const [resource, seen] of greatest) {
    if (seen > fence) throw rejection(fenced, { resource, fence, seen, guard: "postgres" });
  }
}

/**
 * Returns a fence store that keeps the fences of the HTTP guard in the guard table. Pass a pool:
 * each admission is one statement that commits at once. Calls reject with StoreError if the table
 * does not exist.
 */
export function postgresFences(
  db: PostgresDatabase,
  options: GuardTableOptions = {},
): LowerableFenceStore {
  knownOptions("options", options, ["table"]);
  const table = tableParts(options.table ?? guardTableDefault);
  const query = queryOf(db);
  return {
    admit: async (resource, fence) => {
      const greatest = await withTableHint(table, () => raise(query, table, [resource], fence));
      return admission(fence, greatest.get(resource) ?? fence);
    },
    lower: (fenced, lowerOptions = {}) =>
      lowerEach(
        fenced,
        lowerOptions,
        () => postgresMs(query),
        async (resource, lowering) => {
          const { fence, limit } = lowering;
          const text =
            `UPDATE ${quotedTable(table)} SET "fence" = $1::bigint ` +
            `WHERE "resource" = $2::text AND "fence" > $3::bigint RETURNING 1`;
          const params = [String(fence), guardKey(resource), String(limit)];
          return (await withTableHint(table, () => query(text, params))).length > 0;
        },
      ),
  };
}

/**
 * Replaces the stored fence of each resource by `fence` if the stored one is smaller. Returns the
 * fences that are stored then, by resource. GREATEST (instead of a WHERE on the conflict action)
 * makes the locking statement return a row in every case. All callers insert the rows in the order
 * of the lease, which prevents deadlocks.
 */
async function raise(
  query: RunQuery,
  table: readonly string[],
  resources: readonly string[],
  fence: bigint,
): Promise<Map<string, bigint>> {
  const keys = new Map(resources.map((resource) => [guardKey(resource), resource]));
  const values = [...keys.keys()].map((_, index) => `($${index + 2}::text, $1::bigint)`);
  const rows = await query(
    `INSERT INTO ${quotedTable(table)} AS guard ("resource", "fence") ` +
      `VALUES ${values.join(", ")} ON CONFLICT ("resource") ` +
      `DO UPDATE SET "fence" = GREATEST(guard."fence", excluded."fence") ` +
      `RETURNING guard."resource" AS name, guard."fence"::text AS seen`,
    [String(fence), ...keys.keys()],
  );
  const greatest = new Map<string, bigint>();
  for (const { name, seen } of rows as readonly { name?: unknown; seen?: unknown }[]) {
    const resource = keys.get(String(name));
    if (resource !== undefined) greatest.set(resource, parseFence(seen, table.join(".")));
  }
  if (greatest.size !== keys.size) {
    // A trigger or rule suppressed a row. Without the fence of that row, the guard must not accept.
    throw new StoreError(`the guard table "${table.join(".")}" did not return every row`);
  }
  return greatest;
}

async function withTableHint<Result>(
  table: readonly string[],
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await onPostgresTable(guardTableHint(table), run);
  } catch (error) {
    if (sqlState(error) !== "25P01") throw error;
    throw new InvalidOptionError(
      "db",
      "the connection of an open transaction (BEGIN first: the guard's lock ends with it)",
      "one without",
    );
  }
}
