/**
 * All that Holdfast asks of a Redis client: send one command, optionally subscribe, optionally
 * close. Each adapter maps one client library onto this, without importing it.
 */

export interface RedisConnection {
  /** Which library stands behind it, for messages: "ioredis", "node-redis", … */
  readonly library: string;
  /** One server behind the client, or a Redis Cluster that routes by key. */
  readonly topology: "standalone" | "cluster";

  /**
   * Sends one command and resolves to its reply, with text as strings. `key` is the key that a
   * Cluster client routes by; every key of the command lives in its slot. An integer is a number,
   * or its decimal string where the user's ioredis client has `stringNumbers`. An error reply
   * rejects with an Error whose message starts with the server's code (`NOSCRIPT …`).
   *
   * A client that is not connected rejects at once with NotConnectedError and nothing is buffered:
   * a lock command that is sent later than its caller believes is worse than none. Any other
   * rejection leaves open whether the command ran.
   */
  send(key: string, command: readonly string[]): Promise<unknown>;

  /**
   * What a command that is sent now leaves by, behind all that were sent before it: another object
   * after a reconnect. Commands of one turn that see the same before and after ran in their order
   * on one connection. Left out where the library promises no such thing.
   */
  line?(): object | undefined;

  /**
   * Delivers messages of `channel` until the returned function is called. The channel's name goes
   * out as it is given: a key prefix of the user's client applies to keys only. On a Cluster this
   * is sharded pub/sub, so what SPUBLISH sends arrives, and what PUBLISH sends does not.
   */
  subscribe?(channel: string, listener: (message: string) => void): Promise<() => Promise<void>>;

  /** Ends what the adapter itself opened (a subscriber connection), never the user's client. */
  close?(): Promise<void>;
}

/** The client was not connected, so the command was certainly not sent. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";

  constructor(library: string, status: string) {
    super(`the ${library} client is not connected (${status})`);
  }
}
