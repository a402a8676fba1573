import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { Failure } from "./failure.ts";
import { parsePostgresAddress, type PostgresAddress } from "./postgres-address.ts";

/** One server of a store address. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  readonly database: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly tls: TlsFiles | undefined;
}

export interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly servername: string | undefined;
}

/** Store options in an address, such as `?prefix=jobs:&admission=off`. */
export interface StoreSettings {
  readonly prefix?: string;
  readonly maxTtl?: string;
  readonly nodeTimeout?: string;
  readonly admission?: string;
  readonly fencing?: string;
}

export type StoreAddress =
  | PostgresAddress
  | {
      readonly kind: "embedded";
      readonly directory: string;
      /** Longest TTL, if the address names one. */
      readonly maxTtl?: string | undefined;
    }
  | {
      readonly kind: "redis" | "redlock";
      readonly servers: readonly ServerAddress[];
      readonly settings: StoreSettings;
    };

const settingNames = ["prefix", "maxTtl", "nodeTimeout", "admission", "fencing"];
const tlsNames = ["ca", "cert", "key", "servername"];
const forms = "embedded:DIR, redis://HOST, rediss://HOST, redlock:URL,URL,URL or postgres://HOST";
const escapingHint = "write special characters of a password as %40 (@), %2F (/), %2C (,), %25 (%)";

/**
 * Parses a store address. Throws Failure if it is invalid. Resolves relative paths by `base`.
 *
 * No error message repeats any part of the address: a malformed address can contain a password at
 * any position.
 */
export function parseStoreAddress(text: string, base: string): StoreAddress {
  if (text.startsWith("embedded:")) {
    return embeddedAddress(text.slice("embedded:".length), base);
  }
  if (text.startsWith("redlock:")) {
    const urls = text.slice("redlock:".length).split(",").filter(Boolean);
    if (urls.length < 2) {
      throw new Failure("misuse", "a `redlock:` store needs at least two addresses, with commas");
    }
    return { kind: "redlock", ...serversOf(urls, base) };
  }
  if (/^postgres(ql)?:\/\//.test(text)) return parsePostgresAddress(text);
  if (/^rediss?:\/\//.test(text)) return { kind: "redis", ...serversOf([text], base) };
  throw new Failure("misuse", `expected the store to be ${forms}; ${escapingHint}`);
}

/** Only `?name=value` at the end is an option: a directory may have a question mark in its name. */
function embeddedAddress(text: string, base: string): StoreAddress {
  const [, path = "", option, value] = /^(.*?)(?:\?([A-Za-z]+)=([^?/]*))?$/s.exec(text) ?? [];
  if (path === "") throw new Failure("misuse", "the store `embedded:` lacks its directory");
  if (option !== undefined && option !== "maxTtl") {
    throw new Failure("misuse", "expected only maxTtl after the ? of an embedded store");
  }
  return { kind: "embedded", directory: resolve(base, path), maxTtl: value };
}

function serversOf(
  urls: readonly string[],
  base: string,
): { servers: readonly ServerAddress[]; settings: StoreSettings } {
  const settings: Record<string, string> = {};
  const servers = urls.map((text) => {
    const url = urlOf(text);
    for (const [name, value] of url.searchParams) {
      if (tlsNames.includes(name)) continue;
      if (!settingNames.includes(name)) {
        const known = [...settingNames, ...tlsNames].join(", ");
        throw new Failure(
          "misuse",
          `expected only ${known} after the ? of a store address; ${escapingHint}`,
        );
      }
      if (settings[name] !== undefined && settings[name] !== value) {
        throw new Failure("misuse", `the addresses of one store disagree about "${name}"`);
      }
      settings[name] = value;
    }
    return serverOf(url, base);
  });
  return { servers, settings };
}

function urlOf(text: string): URL {
  const url = URL.parse === undefined ? parsed(text) : URL.parse(text);
  const isWhole = url !== null && url !== undefined && url.hostname !== "" && url.hash === "";
  if (isWhole && /^rediss?:$/.test(url.protocol)) return url;
  throw new Failure(
    "misuse",
    `expected an address such as redis://user:password@host:6379/0; ${escapingHint}`,
  );
}

/** Returns undefined for an invalid URL, as `URL.parse` does, which exists only since Node 22. */
function parsed(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function serverOf(url: URL, base: string): ServerAddress {
  const database = url.pathname.replace(/^\//, "");
  if (!/^\d{0,5}$/.test(database)) {
    throw new Failure("misuse", `expected a database number after the host; ${escapingHint}`);
  }
  const file = (name: string): string | undefined => {
    const path = url.searchParams.get(name);
    return path === null ? undefined : resolve(base, path);
  };
  const secure = url.protocol === "rediss:";
  if (!secure && tlsNames.some((name) => url.searchParams.has(name))) {
    throw new Failure("misuse", "ca, cert, key and servername need a rediss:// address");
  }
  const servername = url.searchParams.get("servername") ?? undefined;
  return {
    // Removes the brackets of an IPv6 address, which belong to the URL only.
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 6379 : Number(url.port),
    database: Number(database),
    username: url.username === "" ? undefined : decoded(url.username),
    password: url.password === "" ? undefined : decoded(url.password),
    tls: secure ? { ca: file("ca"), cert: file("cert"), key: file("key"), servername } : undefined,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    const what = "a % in the user or password of a store address must be written as %25";
    throw new Failure("misuse", what);
  }
}

export function serverName({ host, port }: ServerAddress): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

export function describeServer(server: ServerAddress): string {
  const { database } = server;
  return `${serverName(server)}${database === 0 ? "" : `/${database}`}`;
}

export function describeStore(address: StoreAddress): string {
  if (address.kind === "embedded") return `embedded:${address.directory}`;
  if (address.kind === "postgres") return `postgres ${address.server}`;
  return `${address.kind} ${address.servers.map(describeServer).join(", ")}`;
}

export function hasPassword(address: StoreAddress): boolean {
  if (address.kind === "embedded") return false;
  if (address.kind === "postgres") return address.hasPassword;
  return address.servers.some(({ password }) => password !== undefined);
}

/**
 * Returns an id that is equal for addresses of the same locks. A nested `exec` uses it to recognise
 * locks that an outer `exec` holds.
 */
export function storeIdentity(address: StoreAddress): string {
  const text = JSON.stringify(identityParts(address));
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

function identityParts(address: StoreAddress): readonly string[] {
  if (address.kind === "embedded") return ["embedded", realPath(address.directory)];
  if (address.kind === "postgres") {
    return ["postgres", address.settings.schema ?? "", address.server];
  }
  const { servers, settings } = address;
  return ["redis", settings.prefix ?? "", ...servers.map(describeServer).toSorted()];
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
