import { InvalidOptionError, StoreError } from "../../../core/errors.ts";
import { knownOptions } from "../../../core/options.ts";
import { type PostgresDatabase, queryOf, quoted } from "../../../fencing/postgres-query.ts";
import { functionsSql } from "./functions.ts";
import { runSql } from "./run.ts";
import { identitySql, tablesSql } from "./tables.ts";

export const schemaDefault = "holdfast";

/** Oldest version that the SQL is written for, as `server_version_num`. */
export const versionNumberMin = 130_000;

export interface SchemaOptions {
  /** Schema that has the tables and functions of the locks. @default "holdfast" */
  readonly schema?: string;
}

/**
 * Returns the SQL that creates the schema of the locks, for a migration tool or `psql -f`. It may
 * run again, also while locks are held: it creates what is missing, and replaces the functions.
 */
export function migrationSql(options: SchemaOptions = {}): string {
  knownOptions("options", options, ["schema"]);
  const parts = [tablesSql, identitySql, functionsSql, runSql];
  return inSchema(parts.join(""), options.schema);
}

/**
 * Creates the schema of the locks, or brings it up to date. Needs the right to create a schema in
 * the database, or to create in the schema if it exists. Processes may call it at the same time.
 * Rejects with StoreError if the server is older than PostgreSQL 13, and with the server's error if
 * a right is missing.
 */
export async function migrate(db: PostgresDatabase, options: SchemaOptions = {}): Promise<void> {
  const sql = migrationSql(options);
  const query = queryOf(db);
  const [row] = await query("SELECT current_setting('server_version_num') AS version", []);
  const version = Number(row?.["version"]);
  if (!(version >= versionNumberMin)) throw serverTooOld(version);
  // One statement, because drivers differ in how they send several. The lock makes migrations wait
  // for each other: CREATE … IF NOT EXISTS fails if another session creates the same at that time.
  const statement =
    `DO $migration$ BEGIN PERFORM pg_advisory_xact_lock(${migrationLock}); ` +
    `SET LOCAL client_min_messages = warning; EXECUTE $statements$${sql}$statements$; ` +
    `END $migration$`;
  await query(statement, []);
}

/** Number of the lock for migrations: "hold" in ASCII. */
const migrationLock = 0x686f6c64;

/**
 * Returns the SQL that lets `role` use the locks. Owners of the schema and superusers need none of
 * it.
 */
export function grantSql(role: string, options: SchemaOptions = {}): string {
  knownOptions("options", options, ["schema"]);
  if (typeof role !== "string" || role === "") {
    throw new InvalidOptionError("role", "the name of a role", role);
  }
  const to = `TO ${quoted(role)};\n`;
  const sql =
    `GRANT USAGE ON SCHEMA {schema} ${to}` +
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} ${to}` +
    `GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} ${to}` +
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} ${to}`;
  return inSchema(sql, options.schema);
}

/** Returns `sql` with the quoted name of the schema. */
export function inSchema(sql: string, schema: string = schemaDefault): string {
  return sql.replaceAll("{schema}", () => checkedSchema(schema));
}

/** Returns the name in double quotes. Throws InvalidOptionError if it cannot be used. */
function checkedSchema(schema: unknown): string {
  if (typeof schema === "string" && /^[a-zA-Z_][a-zA-Z0-9_]{0,62}$/.test(schema)) {
    return quoted(schema);
  }
  const expected = "a name of at most 63 letters, digits and underscores";
  throw new InvalidOptionError("schema", expected, schema);
}

export function serverTooOld(version: number): StoreError {
  const found = Number.isFinite(version) ? `${Math.floor(version / 10_000)}` : "unknown";
  const needed = versionNumberMin / 10_000;
  return new StoreError(
    `this server is PostgreSQL ${found}: locks need version ${needed} or later. Upgrade the server`,
  );
}
