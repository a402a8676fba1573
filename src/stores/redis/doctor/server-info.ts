/** What a server says of itself, as far as it matters for locks. */
export interface ServerInfo {
  readonly runId: string | undefined;
  readonly version: string | undefined;
  /** The line of writes it stands in: another one after a failover. */
  readonly replicationId: string | undefined;
  readonly role: "master" | "replica" | undefined;
  /** Of a replica: whether it is connected to its master. */
  readonly masterLinkUp: boolean;
  readonly replicaCount: number;
  readonly loading: boolean;
  readonly memoryUsed: number;
  /** 0 where there is no limit. */
  readonly memoryMax: number;
  readonly evictionPolicy: string;
  readonly appendOnly: boolean;
}

/** Reads a reply to INFO. A field that is missing (a proxy, another server) is unknown or 0. */
export function readServerInfo(reply: unknown): ServerInfo {
  const fields = new Map<string, string>();
  for (const [, name = "", value = ""] of String(reply).matchAll(/^(\w+):(.*?)\r?$/gm)) {
    fields.set(name, value);
  }
  const number = (name: string): number => Number(fields.get(name) ?? "0") || 0;
  const role = fields.get("role");
  return {
    runId: fields.get("run_id"),
    replicationId: fields.get("master_replid"),
    // Valkey calls itself a Redis 7.2 for the sake of old clients, and has a version besides.
    version: fields.get("valkey_version") ?? fields.get("redis_version"),
    role: role === "slave" ? "replica" : role === "master" ? "master" : undefined,
    masterLinkUp: fields.get("master_link_status") === "up",
    replicaCount: number("connected_slaves"),
    loading: number("loading") > 0 || number("async_loading") > 0,
    memoryUsed: number("used_memory"),
    memoryMax: number("maxmemory"),
    evictionPolicy: fields.get("maxmemory_policy") ?? "noeviction",
    appendOnly: number("aof_enabled") > 0,
  };
}

/** What only CONFIG tells; undefined where it is not allowed, as on many managed servers. */
export interface ServerConfig {
  /** The rules for snapshots; empty for none. */
  readonly save: string | undefined;
  readonly appendFsync: string | undefined;
}

/** The value in a reply to CONFIG GET of one parameter: a list in RESP2, a map in RESP3. */
export function configValue(reply: unknown): string | undefined {
  const value: unknown = Array.isArray(reply)
    ? typeof reply[0] === "object" && reply[0] !== null
      ? Reflect.get(reply[0], "value")
      : reply[1]
    : typeof reply === "object" && reply !== null
      ? [...(reply instanceof Map ? reply.values() : Object.values(reply))][0]
      : undefined;
  return typeof value === "string" ? value : undefined;
}

/** The address at which the server accepted our connection, from a reply to CLIENT INFO. */
export function localAddress(reply: unknown): string | undefined {
  const found = /(?:^| )laddr=(\S+):\d+(?: |$)/m.exec(String(reply))?.[1];
  return found === undefined || found === "" ? undefined : found;
}
