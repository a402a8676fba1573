import type { Finding } from "../../core/report/doctor.ts";
import type { Row } from "../../fencing/postgres-query.ts";
import type { Connection } from "./connection.ts";
import { type Failure, PostgresError } from "./faults.ts";
import { serverTooOld, versionNumberMin } from "./schema/migration.ts";
import { node } from "./server-watch.ts";

/** Settings and state of the server. All values are texts, because drivers differ in numbers. */
const settingsText = `SELECT current_setting('server_version_num') AS version,
  current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS commits,
  current_setting('synchronous_standby_names') AS standbys,
  current_setting('default_transaction_isolation') AS isolation,
  current_setting('transaction_read_only') AS read_only,
  pg_is_in_recovery()::text AS standby,
  current_user::text AS "user",
  (SELECT count(*) FROM pg_stat_replication)::text AS copies,
  EXISTS (SELECT 1 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = $1::text AND p.proname = 'run_v1')::text AS has_schema,
  has_schema_privilege(to_regnamespace('{schema}'), 'USAGE')::text AS may_use`;

/** Rights on tables and sequences, and the sequence of fences. */
const schemaText = `SELECT {schema}.timeline_v1()::text AS timeline,
  (last_value - {schema}.clock_us_v1())::text AS ahead_us,
  concat_ws(', ',
    CASE WHEN has_table_privilege('{schema}.locks', 'SELECT') AND
      has_table_privilege('{schema}.locks', 'INSERT') AND
      has_table_privilege('{schema}.locks', 'UPDATE') AND
      has_table_privilege('{schema}.locks', 'DELETE') THEN NULL ELSE 'locks' END,
    CASE WHEN has_table_privilege('{schema}.queue', 'SELECT') AND
      has_table_privilege('{schema}.queue', 'INSERT') AND
      has_table_privilege('{schema}.queue', 'UPDATE') AND
      has_table_privilege('{schema}.queue', 'DELETE') THEN NULL ELSE 'queue' END,
    CASE WHEN has_table_privilege('{schema}.server', 'SELECT') AND
      has_table_privilege('{schema}.server', 'UPDATE') THEN NULL ELSE 'server' END,
    CASE WHEN has_sequence_privilege('{schema}.fences', 'USAGE') AND
      has_sequence_privilege('{schema}.fences', 'UPDATE') THEN NULL ELSE 'fences' END,
    CASE WHEN has_sequence_privilege('{schema}.tickets', 'USAGE') THEN NULL ELSE 'tickets' END
  ) AS lacking
  FROM {schema}.fences`;

/** Lead of the fences over the clock that a guard still accepts for half a day. */
const aheadUsMax = 43_200_000_000;

/** Looks for problems of the server, the schema and the user. Changes nothing. */
export async function examine(
  connection: Connection,
  schema: string,
  steppedMs: number,
): Promise<readonly Finding[]> {
  const settings = await connection.send(settingsText, [schema], (rows) => rows[0] ?? {});
  if (!settings.ok) return [failureFinding(settings.failure)];
  const findings = settingsFindings(settings.value, schema, steppedMs);
  if (findings.some(({ level }) => level === "error")) return findings;
  const inside = await connection.send(schemaText, [], (rows) => rows[0] ?? {});
  if (!inside.ok) return [...findings, failureFinding(inside.failure)];
  return [...findings, ...schemaFindings(inside.value, settings.value, schema)];
}

const codes = {
  unreachable: "unreachable",
  credentials: "unauthenticated",
  schema: "schema-missing",
  rights: "permission-missing",
  "read-only": "replica",
  refused: "probe-failed",
} as const;

function failureFinding({ error }: Failure): Finding {
  const code = error instanceof PostgresError ? codes[error.fault] : "probe-failed";
  return {
    level: "error",
    code,
    node,
    what: error.message,
    why: "no lock can be taken, renewed or released",
    remedy: "put right what the message says",
  };
}

function settingsFindings(row: Row, schema: string, steppedMs: number): readonly Finding[] {
  const is = (name: string, value: string): boolean => row[name] === value;
  const version = Number(row["version"]);
  const found: (Finding | false)[] = [
    version < versionNumberMin && {
      ...error("version-too-old", serverTooOld(version).message),
      remedy: "upgrade the server",
    },
    is("standby", "true") && {
      ...error("replica", "the server is a standby"),
      remedy: "connect to the primary, for example with target_session_attrs=read-write",
    },
    is("standby", "false") &&
      is("read_only", "on") && {
        ...error("writes-refused", "transactions are read-only by default"),
        remedy: "set default_transaction_read_only = off for this user",
      },
    !is("may_use", "false") &&
      is("has_schema", "false") && {
        ...error("schema-missing", `the schema "${schema}" of the locks is missing or too old`),
        remedy: "run migrate(pool), or the SQL of migrationSql(), from holdfast/postgres",
      },
    is("may_use", "false") && permissionMissing(row, `USAGE on the schema "${schema}"`),
    is("fsync", "off") && {
      ...warning("persistence-off", "fsync is off: commits may be lost if the machine crashes"),
      why: "the server may then forget who holds what",
      remedy: "set fsync = on",
    },
    !is("copies", "0") &&
      is("standbys", "") && {
        ...warning("replicas", `${String(row["copies"])} standbys, none of them synchronous`),
        level: "info",
        why: "a failover may forget the latest grants; fences grow even then",
        remedy: "set synchronous_standby_names, if one holder at a time must survive a failover",
      },
    !is("standbys", "") &&
      is("commits", "local") && {
        ...warning("standbys-skipped", "synchronous_commit is local: no commit waits for standbys"),
        why: "a failover may forget the latest grants; fences grow even then",
        remedy: "set synchronous_commit = on for this user",
      },
    !is("isolation", "read committed") && {
      ...warning("isolation", `the default isolation is ${String(row["isolation"])}`),
      why: "attempts for one lock at the same time fail with 40001, and are sent again",
      remedy: "set default_transaction_isolation = 'read committed' for this user",
    },
    steppedMs > 0 && {
      ...warning("clock-stepped", `its clock was set forward by ${Math.round(steppedMs)} ms`),
      why: "locks end early by as much, and another owner may get them",
      remedy: "let the clock be slewed, not stepped (chrony: makestep only at the start)",
    },
  ];
  return found.filter((finding) => finding !== false);
}

function schemaFindings(row: Row, settings: Row, schema: string): readonly Finding[] {
  const { timeline, ahead_us: aheadUs, lacking } = row;
  const found: (Finding | false)[] = [
    lacking !== "" &&
      permissionMissing(settings, `a right on ${String(lacking)} in the schema "${schema}"`),
    timeline === "0" && {
      ...warning("timeline-unknown", "this server does not allow to read its timeline"),
      why: "a promoted copy is recognised by the time of its start only",
      remedy: "allow pg_walfile_name and pg_current_wal_insert_lsn, and run migrate again",
    },
    Number(aheadUs) > aheadUsMax && {
      ...warning("fences-ahead", "the fences are more than 12 hours ahead of the clock"),
      why: "guards refuse fences that are more than a day ahead",
      remedy:
        "find out whether the clock was set back, or whether the server restarts all the time",
    },
  ];
  return found.filter((finding) => finding !== false);
}

function permissionMissing(row: Row, what: string): Finding {
  const user = String(row["user"]);
  return {
    ...error("permission-missing", `the user ${user} lacks ${what}`),
    remedy: `run the SQL of grantSql(${JSON.stringify(user)}) as the owner of the schema`,
  };
}

function error(code: string, what: string): Finding {
  const why = "no lock can be taken, renewed or released";
  return { level: "error", code, node, what, why, remedy: "" };
}

function warning(code: string, what: string): Finding {
  return { level: "warning", code, node, what, why: "", remedy: "" };
}
