/** Fields of a reply to INFO that matter for locks. */
export interface ServerInfo {
  readonly runId: string | undefined;
  readonly version: string | undefined;
  /** Identifies the replication history of the server: changes with a failover. */
  readonly replicationId: string | undefined;
  readonly role: "master" | "replica" | undefined;
  /** True if the server is a replica that is connected to its master. */
  readonly masterLinkUp: boolean;
  readonly replicaCount: number;
  readonly loading: boolean;
  readonly memoryUsed: number;
  /** Limit for the server's memory; 0 if there is no limit. */
  readonly memoryMax: number;
  readonly evictionPolicy: string;
  readonly appendOnly: boolean;
}

/** Parses a reply to INFO. A missing field (a proxy, another server) is undefined or 0. */
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
    // Valkey reports itself as Redis 7.2 to old clients, and has a field for its own version.
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

/**
 * Settings that only CONFIG returns. Each is undefined if CONFIG is denied, as on many managed
 * servers.
 */
export interface ServerConfig {
  /** Rules for snapshots; empty if there are none. */
  readonly save: string | undefined;
  readonly appendFsync: string | undefined;
}

/** Returns the value in a CONFIG GET reply for one parameter: a list in RESP2, a map in RESP3. */
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

/** Returns the address at which the server accepted our connection, from a reply to CLIENT INFO. */
export function localAddress(reply: unknown): string | undefined {
  const found = /(?:^| )laddr=(\S+):\d+(?: |$)/m.exec(String(reply))?.[1];
  return found === undefined || found === "" ? undefined : found;
}
