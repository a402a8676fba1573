/**
 * All that Holdfast needs of a Redis client: send one command, and optionally subscribe. Each
 * adapter maps one client library onto this, without importing it.
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
   * Returns a promise while the client connects for the first time: it resolves once commands can
   * be sent, and rejects with NotConnectedError once the client has failed to connect or was
   * closed. Undefined before it begins and for good afterwards. Left out if the library does not
   * show it.
   */
  firstConnect?(): Promise<void> | undefined;

  /**
   * What a command that is sent now leaves by, behind all that were sent before it: another object
   * after a reconnect. Commands of one turn that see the same before and after ran in their order
   * on one connection. Left out where the library promises no such thing.
   */
  line?(): object | undefined;

  /**
   * Returns another value once the client may have sent commands a second time, as some do after a
   * reconnect. Compared before a command is sent and at its reply: where they differ, the reply may
   * be that of a second run, and "there is nothing" may be the first one's doing. Such a reply then
   * proves nothing. A client that never repeats a command leaves it out.
   * @default what `line` returns
   */
  resendEpoch?(): unknown;

  /**
   * Subscribes to `channel`, on a connection that the adapter opens and shares among all its
   * subscriptions, and returns what ends this one: the connection closes with the last. An end
   * that comes before `onReady` gives up the attempt. The channel's name is sent as it is: a key
   * prefix of the user's client applies to keys only. On a Cluster this is sharded pub/sub: it
   * receives what SPUBLISH sends, and not what PUBLISH sends.
   *
   * Never throws, calls nothing back before it returns, and never subscribes again by itself: the
   * caller decides if and when. Nothing on the connection rejects without a handler.
   */
  subscribe?(channel: string, listener: SubscriptionListener): () => Promise<void>;
}

/** What a subscription reports, until it is ended. */
export interface SubscriptionListener {
  /** The server has confirmed it: what is published from now on arrives. Called at most once. */
  onReady(): void;
  onMessage(message: string): void;
  /** It could not be made, or it ended by itself. Called at most once, and nothing follows. */
  onLost(cause: unknown): void;
}

/** The client was not connected, so the command was certainly not sent. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";

  constructor(library: string, status: string) {
    super(`the ${library} client is not connected (${status})`);
  }
}
