import { Failure } from "./failure.ts";

/** Address of a store in Postgres. */
export interface PostgresAddress {
  readonly kind: "postgres";
  /** URL for the client, without the options of the store. Contains the password. */
  readonly url: string;
  /** Host, port and database, for messages. */
  readonly server: string;
  readonly hasPassword: boolean;
  readonly settings: PostgresAddressSettings;
}

/** Options of the store in an address, such as `?schema=locks`. */
export interface PostgresAddressSettings {
  readonly schema?: string;
  readonly maxTtl?: string;
  readonly timeout?: string;
}

const settingNames: readonly string[] = ["schema", "maxTtl", "timeout"];
const expected =
  "expected a store such as postgres://user:password@host:5432/database; " +
  "write special characters of a password as %40 (@), %2F (/), %25 (%)";

/**
 * Parses `postgres://…`. The options of the store are taken out of the query; all others, such as
 * `sslmode`, are left to the client. No message repeats a part of the address.
 */
export function parsePostgresAddress(text: string): PostgresAddress {
  let url: URL;
  try {
    url = new URL(text);
    decodeURIComponent(url.username + url.password);
  } catch {
    throw new Failure("misuse", expected);
  }
  if (url.hostname === "" || url.hash !== "") throw new Failure("misuse", expected);
  const settings: Record<string, string> = {};
  for (const name of settingNames) {
    const value = url.searchParams.get(name);
    if (value !== null) settings[name] = value;
    url.searchParams.delete(name);
  }
  const port = url.port === "" ? "5432" : url.port;
  // Without a name, the database is named like the user.
  const database = url.pathname.length > 1 ? url.pathname : `/${url.username}`;
  const server = `${url.hostname}:${port}${database}`;
  return { kind: "postgres", url: url.href, server, hasPassword: url.password !== "", settings };
}
