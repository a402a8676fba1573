/**
 * Interface that Holdfast needs of a Redis client: send a command and, optionally, subscribe. Each
 * adapter maps one client library onto this interface without importing the library.
 */

export interface RedisConnection {
  /** Name of the client library for messages: "ioredis", "node-redis", … */
  readonly library: string;
  /** "standalone" for one server, "cluster" for a Redis Cluster that routes commands by key. */
  readonly topology: "standalone" | "cluster";

  /**
   * Sends one command and resolves to its reply, with texts as strings. `key` is the key by which a
   * Cluster client routes; all keys of the command are in its slot. An integer reply is a number,
   * or a decimal string if the user's ioredis client has `stringNumbers`. An error reply rejects
   * with an Error whose message starts with the server's code (`NOSCRIPT …`).
   *
   * If the client is not connected, rejects at once with NotConnectedError and buffers nothing: a
   * lock command must not be sent later than its caller expects. After any other rejection the
   * command may or may not have run.
   */
  send(key: string, command: readonly string[]): Promise<unknown>;

  /**
   * Returns a promise while the client connects for the first time. It resolves when commands can
   * be sent. It rejects with NotConnectedError if the first connect fails or the client is closed.
   * Returns undefined before the connect starts and after it ended. Missing if the library does not
   * expose this.
   */
  firstConnect?(): Promise<void> | undefined;

  /**
   * Returns an object that stands for the current connection: another object after a reconnect.
   * Commands that are sent in one event-loop turn ran in order on one connection if this returned
   * the same object before the first send and after the last reply. Missing if the library does not
   * guarantee that.
   */
  line?(): object | undefined;

  /**
   * Returns a different value after the client may have sent commands again, as some do after a
   * reconnect. The caller compares the values from before the send and from the reply. If they
   * differ, the reply may belong to a second run of the command and proves nothing: "key not
   * found", for example, may be an effect of the first run.
   *
   * Missing if the client never repeats a command.
   * @default the result of `line`
   */
  resendEpoch?(): unknown;

  /**
   * Subscribes to `channel` and returns a function that ends the subscription. All subscriptions of
   * an adapter share one connection, which closes with the last one. Ending it before `onReady`
   * cancels the attempt. The channel name is sent unchanged, without the key prefix of the user's
   * client. On a Cluster this is sharded pub/sub: it receives SPUBLISH, not PUBLISH.
   *
   * Never throws, calls no listener before it returns, and never re-subscribes: the caller decides
   * that. Rejections on the connection are always handled.
   */
  subscribe?(channel: string, listener: SubscriptionListener): () => Promise<void>;
}

/** Reports of a subscription, until it is ended. */
export interface SubscriptionListener {
  /** Called at most once, when the server has confirmed: messages published from now on arrive. */
  onReady(): void;
  onMessage(message: string): void;
  /** Called at most once and last, if subscribing failed or the subscription ended by itself. */
  onLost(cause: unknown): void;
}

/** Thrown if the client was not connected: the command was certainly not sent. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";

  constructor(library: string, status: string) {
    super(`the ${library} client is not connected (${status})`);
  }
}
