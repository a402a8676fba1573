/** Options of a client that may name its server. */
interface ServerOptions {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly path?: unknown;
  readonly sentinels?: unknown;
  readonly name?: unknown;
  readonly socket?: { readonly host?: unknown; readonly port?: unknown; readonly path?: unknown };
  readonly addresses?: unknown;
}

const usualPort = 6379;

/**
 * Returns the address of a client's server for messages: `host:port`, the path of a socket, or the
 * name of the master that Sentinel looks up. Never a user or a password. Undefined if the options
 * name no server.
 */
export function addressOf(options: unknown): string | undefined {
  if (typeof options !== "object" || options === null) return undefined;
  const { sentinels, name, socket, addresses, ...own } = options as ServerOptions;
  if (Array.isArray(sentinels)) return typeof name === "string" ? `master ${name}` : undefined;
  const [first] = Array.isArray(addresses) ? (addresses as ServerOptions[]) : [];
  const { host, port, path } = socket ?? first ?? own;
  if (typeof path === "string" && path !== "") return path;
  if (typeof host !== "string" || host === "") return undefined;
  const number = typeof port === "number" || typeof port === "string" ? port : usualPort;
  return `${host.includes(":") ? `[${host}]` : host}:${number}`;
}
