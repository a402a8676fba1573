export type { PostgresDatabase, PostgresQuery } from "../../fencing/postgres-query.ts";
export { PostgresError, type PostgresFault } from "./faults.ts";
export { holdUntilCommit } from "./hold-until-commit.ts";
export type { PostgresStoreOptions } from "./options.ts";
export { postgres } from "./postgres.ts";
export { grantSql, migrate, migrationSql, type SchemaOptions } from "./schema/migration.ts";
