import { InvalidOptionError } from "../../core/errors.ts";
import { knownOptions, ttlMinMs } from "../../core/options.ts";
import { durationMs, type Duration } from "../../core/time/durations.ts";
import type { PostgresDatabase } from "../../fencing/postgres-query.ts";
import { inSchema, schemaDefault, type SchemaOptions } from "./schema/migration.ts";

export interface PostgresStoreOptions extends SchemaOptions {
  /**
   * Longest time to wait for the reply to one statement. An attempt may need a few statements, and
   * ends within a few times this.
   * @default "2s": longer than an ordinary checkpoint or a full disk cache makes a commit wait
   */
  readonly timeout?: Duration;
  /** Longest TTL of a lock. @default "30s", as for Redis */
  readonly maxTtl?: Duration;
  /**
   * Share of the TTL by which the clocks may drift apart. Subtracted from every TTL to get the
   * validity. @default 0.01
   */
  readonly drift?: number;
  /**
   * Client for `LISTEN`, if it must not be the given one: a pooler in transaction mode, such as
   * PgBouncer, loses notifications, so give a client that connects to the server itself. `false`
   * uses no notifications: waiting calls poll.
   * @default the given client, if it can listen
   */
  readonly listen?: PostgresDatabase | false;
}

export interface PostgresSettings {
  readonly schema: string;
  readonly timeoutMs: number;
  readonly maxTtlMs: number;
  readonly drift: number;
}

const dayMs = 86_400_000;

/** Checks the options and adds the defaults. Throws InvalidOptionError. */
export function resolvePostgresOptions(given: PostgresStoreOptions): PostgresSettings {
  knownOptions("options", given, ["schema", "timeout", "maxTtl", "drift", "listen"]);
  const { schema = schemaDefault, timeout = 2_000, maxTtl = 30_000, drift = 0.01 } = given;
  inSchema("{schema}", schema);
  if (typeof drift !== "number" || !(drift >= 0 && drift <= 0.5)) {
    throw new InvalidOptionError("drift", "a number from 0 to 0.5", drift);
  }
  return {
    schema,
    timeoutMs: durationMs("timeout", timeout, { minMs: 1, maxMs: dayMs }),
    maxTtlMs: durationMs("maxTtl", maxTtl, { minMs: ttlMinMs, maxMs: dayMs }),
    drift,
  };
}

/** Returns for how long a lease of this TTL is valid. Timestamps are exact to a millisecond. */
export function validityMsOf(ttlMs: number, drift: number): number {
  return Math.floor(ttlMs * (1 - drift)) - 1;
}
