import type { RedisConnection } from "./contract.ts";
import type { Subscriber, SubscriberEvents } from "./subscriptions.ts";

export interface GlideClass {
  createClient(config: object): Promise<GlideSubscriber>;
}

/** Client of version 2.3 or later, which can subscribe after it was created. */
interface GlideSubscriber {
  close(): void;
  subscribe(channels: Set<string>, timeoutMs: number): Promise<unknown>;
  unsubscribeLazy(channels: Set<string> | null): Promise<unknown>;
  ssubscribe(channels: Set<string>, timeoutMs: number): Promise<unknown>;
  sunsubscribeLazy(channels: Set<string> | null): Promise<unknown>;
  /**
   * Returns the subscriptions that the GLIDE core has confirmed, without a request to the server.
   */
  getSubscriptions?(): Promise<{
    readonly actualSubscriptions: Readonly<Record<string, ReadonlySet<unknown>>>;
  }>;
}

export interface GlideUser {
  readonly client: { readonly config?: object };
  readonly topology: RedisConnection["topology"];
  readonly send: RedisConnection["send"];
}

/** `ProtocolVersion.RESP3`; the number is part of the library's API. */
const resp3 = 0;
const subscribeTimeoutMs = 5_000;
const lookEveryMs = 1_000;

/**
 * Script that returns 1 if the user may run a command on a channel. Servers before version 7 cannot
 * check that, so the result is 1.
 */
const mayRun = `
if redis.acl_check_cmd and not redis.acl_check_cmd(ARGV[1], ARGV[2]) then return 0 end
return 1`;

/**
 * Opens a separate client, because on the user's client our messages would mix with the user's
 * messages.
 *
 * The GLIDE core re-subscribes by itself and does not report a loss. If the server refuses a
 * subscription, the core retries without a pause, 30,000 times a second. So the permission is
 * checked before the subscribe. Once a second a check finds out whether the subscription still
 * exists.
 */
export function openGlideSubscriber(user: GlideUser, events: SubscriberEvents): Subscriber {
  const { client, topology, send } = user;
  const callback = ({ channel, message }: { channel: unknown; message: unknown }) =>
    events.deliver(String(channel), String(message));
  const opening = (client.constructor as unknown as GlideClass).createClient({
    ...client.config,
    protocol: resp3,
    lazyConnect: false,
    pubsubSubscriptions: { channelsAndPatterns: {}, callback },
  });
  const [subscribe, unsubscribe, command] =
    topology === "standalone"
      ? (["subscribe", "unsubscribeLazy", "SUBSCRIBE"] as const)
      : (["ssubscribe", "sunsubscribeLazy", "SSUBSCRIBE"] as const);
  const watch = new Watch(events.lost);
  return {
    connected: opening,
    async subscribe(channel) {
      const subscriber = await opening;
      if ((await send(channel, ["EVAL", mayRun, "0", command, channel])) === 0) {
        throw new Error(`NOPERM this user may not run ${command} on the channel`);
      }
      await subscriber[subscribe](new Set([channel]), subscribeTimeoutMs);
      watch.add(subscriber, channel);
    },
    async unsubscribe(channel) {
      watch.remove(channel);
      await (await opening)[unsubscribe](new Set([channel]));
    },
    async close() {
      watch.end();
      await opening.then(closeInOrder, () => undefined);
    },
  };

  /**
   * Unsubscribes, then closes. GLIDE prints an error to stderr if requests are pending at the
   * close.
   */
  async function closeInOrder(subscriber: GlideSubscriber): Promise<void> {
    await subscriber[unsubscribe](null).catch(() => undefined);
    subscriber.close();
  }
}

/** Checks regularly whether the core is still subscribed. Does not keep the process running. */
class Watch {
  readonly #lost: (cause: unknown) => void;
  readonly #channels = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  constructor(lost: (cause: unknown) => void) {
    this.#lost = lost;
  }

  add(subscriber: GlideSubscriber, channel: string): void {
    if (this.#hasEnded) return;
    this.#channels.add(channel);
    this.#timer ??= setInterval(() => void this.#look(subscriber), lookEveryMs).unref();
  }

  remove(channel: string): void {
    this.#channels.delete(channel);
  }

  end(): void {
    this.#hasEnded = true;
    clearInterval(this.#timer);
  }

  async #look(subscriber: GlideSubscriber): Promise<void> {
    try {
      const found = await subscriber.getSubscriptions?.();
      if (found === undefined || this.#hasEnded) return;
      const actual = Object.values(found.actualSubscriptions);
      for (const channel of this.#channels) {
        if (actual.some((channels) => channels.has(channel))) continue;
        this.#lost(new Error("the connection of the subscriber ended"));
        return;
      }
    } catch (error) {
      this.#lost(error);
    }
  }
}
