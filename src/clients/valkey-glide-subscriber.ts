import type { RedisConnection } from "./contract.ts";
import type { Subscriber, SubscriberEvents } from "./subscriptions.ts";

export interface GlideClass {
  createClient(config: object): Promise<GlideSubscriber>;
}

/** A client of a version (2.3 and later) that can subscribe after it was created. */
interface GlideSubscriber {
  close(): void;
  subscribe(channels: Set<string>, timeoutMs: number): Promise<unknown>;
  unsubscribeLazy(channels: Set<string> | null): Promise<unknown>;
  ssubscribe(channels: Set<string>, timeoutMs: number): Promise<unknown>;
  sunsubscribeLazy(channels: Set<string> | null): Promise<unknown>;
  /** What the core has confirmed, without asking the server. */
  getSubscriptions?(): Promise<{
    readonly actualSubscriptions: Readonly<Record<string, ReadonlySet<unknown>>>;
  }>;
}

export interface GlideUser {
  readonly client: { readonly config?: object };
  readonly topology: RedisConnection["topology"];
  readonly send: RedisConnection["send"];
}

/** `ProtocolVersion.RESP3`: its value is part of the library's API. */
const resp3 = 0;
const subscribeTimeoutMs = 5_000;
const lookEveryMs = 1_000;

/** Servers before version 7 cannot say. */
const mayRun = `
if redis.acl_check_cmd and not redis.acl_check_cmd(ARGV[1], ARGV[2]) then return 0 end
return 1`;

/**
 * Opens a client of its own: on the user's, our messages would arrive among the user's.
 *
 * Its core subscribes again by itself, reports no loss, and if the server refuses it, asks again
 * without a pause: 30,000 times a second. So we ask first whether we may, and look once a second
 * whether it is still subscribed.
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

  /** Closed while requests are still on their way to its core, GLIDE complains on stderr. */
  async function closeInOrder(subscriber: GlideSubscriber): Promise<void> {
    await subscriber[unsubscribe](null).catch(() => undefined);
    subscriber.close();
  }
}

/** Looks now and then whether the core is still subscribed; never keeps the process running. */
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
