import { isObject } from "../../fencing/guard.ts";

/** A session that receives notifications on one channel. */
export interface Listener {
  /** Ends the session, or its part of it. Never rejects. */
  close(): Promise<void>;
}

interface Handlers {
  readonly onMessage: (payload: string) => void;
  /** The session has ended, or was replaced: notifications may be lost. */
  readonly onGap: () => void;
}

/** Opens a session that listens. `channel` is a name that needs no quotes. */
export type Listen = (channel: string, handlers: Handlers, timeoutMs: number) => Promise<Listener>;

/** Client of `pg`, as far as it is used here. */
interface PgClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  end(): Promise<unknown>;
  on(event: "notification", listener: (message: { payload?: string }) => void): unknown;
  on(event: "error" | "end", listener: () => void): unknown;
  unref?(): void;
}

interface PgPool {
  readonly Client: new (options: object) => PgClient;
  readonly options: object;
}

interface PostgresJs {
  listen(
    channel: string,
    onMessage: (payload: string) => void,
    onListen: () => void,
  ): Promise<{ unlisten(): Promise<unknown> }>;
}

interface Pglite {
  listen(channel: string, onMessage: (payload: string) => void): Promise<() => Promise<unknown>>;
}

/**
 * Returns how this client listens; undefined if it cannot: a single client of `pg`, and a query
 * function. A pool of `pg` gives its options to a connection of its own, so none of the pool's
 * connections is kept. `postgres` keeps one connection for all channels until its `end()`.
 */
export function listenOf(db: unknown): Listen | undefined {
  if (!isObject(db) && typeof db !== "function") return undefined;
  const given = db as unknown as Record<string, unknown>;
  const { Client: PoolClient, options, totalCount, unsafe, listen, exec } = given;
  if (typeof PoolClient === "function" && isObject(options) && typeof totalCount === "number") {
    return (...request) => listenByPg(given as unknown as PgPool, ...request);
  }
  if (typeof listen !== "function") return undefined;
  if (typeof unsafe === "function") {
    return (channel, handlers) =>
      listenByPostgresJs(given as unknown as PostgresJs, channel, handlers);
  }
  if (typeof exec === "function") {
    return (channel, handlers) => listenByPglite(given as unknown as Pglite, channel, handlers);
  }
  return undefined;
}

async function listenByPg(
  pool: PgPool,
  channel: string,
  handlers: Handlers,
  timeoutMs: number,
): Promise<Listener> {
  // A copy of enumerable properties lacks the password, which the pool hides from logs.
  const { password } = pool.options as { password?: unknown };
  const options = { ...pool.options, password, connectionTimeoutMillis: timeoutMs };
  const client = new pool.Client(options);
  let isOpen = true;
  const onGap = (): void => {
    if (isOpen) handlers.onGap();
    isOpen = false;
  };
  client.on("error", onGap);
  client.on("end", onGap);
  client.on("notification", ({ payload = "" }) => handlers.onMessage(payload));
  const close = async (): Promise<void> => {
    isOpen = false;
    await client.end().catch(() => undefined);
  };
  try {
    await client.connect();
    // The session must not keep a process running: a waiting call does that by itself.
    client.unref?.();
    await client.query(`LISTEN ${channel}`);
    return { close };
  } catch (error) {
    void close();
    throw error;
  }
}

async function listenByPostgresJs(
  sql: PostgresJs,
  channel: string,
  { onMessage, onGap }: Handlers,
): Promise<Listener> {
  let isFirst = true;
  const onListen = (): void => {
    // Called again after each reconnection.
    if (!isFirst) onGap();
    isFirst = false;
  };
  const listening = await sql.listen(channel, onMessage, onListen);
  return { close: () => listening.unlisten().then(ignore, ignore) };
}

async function listenByPglite(
  db: Pglite,
  channel: string,
  { onMessage }: Handlers,
): Promise<Listener> {
  const unlisten = await db.listen(channel, onMessage);
  return { close: () => unlisten().then(ignore, ignore) };
}

function ignore(): void {}
