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
   * Address of the server for messages, such as "host:6379", without a user or a password. Missing
   * if the client does not show it, and for a Cluster.
   */
  readonly address?: string | undefined;

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
   * Returns a promise while the client connects for the first time. The promise resolves when
   * commands can be sent. It rejects with NotConnectedError if the first connect fails or the
   * client is closed. The result is undefined before the connect starts and after it has ended. The
   * method is missing if the library does not show its connect.
   */
  firstConnect?(): Promise<void> | undefined;

  /**
   * Returns an object that stands for the current connection. After a reconnect it is another
   * object. Commands that are sent in one event-loop turn ran in order on one connection if the
   * object before the first send is also the object after the last reply. The method is missing if
   * the library does not guarantee that.
   */
  line?(): object | undefined;

  /**
   * Returns a different value after the client may have sent commands again, as some clients do
   * after a reconnect. The caller compares the values from before the send and after the reply. If
   * they differ, the reply may belong to a second run of the command and proves nothing: "key not
   * found", for example, may be an effect of the first run.
   *
   * Missing if the client never repeats a command.
   * @default the result of `line`
   */
  resendEpoch?(): unknown;

  /**
   * Subscribes to `channel` and returns a function that ends the subscription. All subscriptions of
   * an adapter share one connection, which closes with the last subscription. If the function is
   * called before `onReady`, it cancels the attempt. The channel name is sent unchanged, without
   * the key prefix of the user's client. On a Cluster the method uses sharded pub/sub: messages
   * arrive from SPUBLISH, not from PUBLISH.
   *
   * Never throws, calls no listener before it returns, and never re-subscribes: the caller decides
   * that. Rejections on the connection are always handled.
   */
  subscribe?(channel: string, listener: SubscriptionListener): () => Promise<void>;
}

/**
 * Listener for the events of one subscription. No method is called after the subscription is ended.
 */
export interface SubscriptionListener {
  /**
   * Called at most once, when the server has confirmed the subscription. Messages that are
   * published from now on arrive.
   */
  onReady(): void;
  onMessage(message: string): void;
  /**
   * Called at most once, as the last call, if subscribing failed or the subscription ended by
   * itself.
   */
  onLost(cause: unknown): void;
}

/** Error for a client that is not connected. The command was certainly not sent. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";

  /** `cause` is the last error of the client, if it has reported one. */
  constructor(library: string, status: string, cause?: unknown) {
    const message = `the ${library} client is not connected (${status})`;
    super(message, cause === undefined ? undefined : { cause });
  }
}
