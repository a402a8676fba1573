import { InvalidOptionError, LeaseLostError } from "../../core/errors.ts";
import type { Lease } from "../../core/lease/lease.ts";
import { knownOptions } from "../../core/options.ts";
import { sqlState } from "../../fencing/driver-errors.ts";
import { isObject } from "../../fencing/guard.ts";
import { type PostgresDatabase, queryOf } from "../../fencing/postgres-query.ts";
import { failureOf } from "./faults.ts";
import { base64 } from "./operation.ts";
import { inSchema, schemaDefault, type SchemaOptions } from "./schema/migration.ts";

/**
 * Checks the lease in an open transaction of the database that has the locks, and keeps the lock
 * from changing hands until that transaction ends: what the transaction writes is committed while
 * the lease still holds its resources, even if its process is paused, or if the TTL ends meanwhile.
 * The lease can be renewed at that time. Commit before you release it.
 *
 * `tx` is a client with an open transaction. Rejects with LeaseLostError if another owner has, or
 * had, a resource: roll back then. Under REPEATABLE READ and SERIALIZABLE it may reject with the
 * server's error 40001: repeat the transaction.
 */
export async function holdUntilCommit(
  tx: PostgresDatabase,
  lease: Lease,
  options: SchemaOptions = {},
): Promise<void> {
  knownOptions("options", options, ["schema"]);
  const { schema = schemaDefault } = options;
  if (!isObject(lease) || typeof lease.assertHeld !== "function") {
    throw new InvalidOptionError("lease", "a lease", lease);
  }
  lease.assertHeld();
  const query = queryOf(tx);
  const { resources, fence } = lease;
  let isHeld: unknown;
  try {
    // Fails outside a transaction (25P01), where the check would hold for no time at all.
    await query(inSchema("LOCK TABLE {schema}.locks IN ROW SHARE MODE", schema), []);
    const text = "SELECT {schema}.check_v1($1::text::jsonb, $2::text::bigint) AS held";
    const params = [JSON.stringify(resources.map(base64)), String(fence)];
    const [row] = await query(inSchema(text, schema), params);
    isHeld = row?.["held"];
  } catch (error) {
    const state = sqlState(error) ?? "";
    if (state === "25P01") {
      const expected =
        "the connection of an open transaction (BEGIN first: the check ends with it)";
      throw new InvalidOptionError("tx", expected, "one without");
    }
    // Other errors stay as the driver reports them, so that 40001 can be recognised.
    if (/^(3F000|42)/.test(state)) throw failureOf(error, schema).error;
    throw error;
  }
  if (isHeld !== true) throw new LeaseLostError(resources, "taken");
}
