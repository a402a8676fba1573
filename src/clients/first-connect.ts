import { NotConnectedError } from "./contract.ts";
import { reasonOf } from "./last-error.ts";

/** The part of a client's event emitter that is used here. */
export interface ConnectEmitter {
  on(event: string, listener: (cause?: unknown) => void): unknown;
  removeListener(event: string, listener: (cause?: unknown) => void): unknown;
  listenerCount(event: string): number;
}

/**
 * `idle`: connecting has not begun. `over`: the client is or was connected, or the connect failed.
 */
export type ConnectState = "idle" | "connecting" | "over";

/** Describes how a client library shows its first connect. */
export interface ConnectWatch {
  readonly library: string;
  readonly state: () => ConnectState;
  /** Event that the client emits when it is usable. */
  readonly readyEvent: string;
  /**
   * Events that the client emits when one attempt failed or the client was closed. The client may
   * still retry.
   */
  readonly failedEvents: readonly string[];
}

/** Result of `firstConnectOf` for each client. Several connections of one client share it. */
const known = new WeakMap<object, () => Promise<void> | undefined>();

/**
 * Returns the `firstConnect` method of `RedisConnection` for `client`. The first event removes all
 * the listeners that the method added to the client.
 */
export function firstConnectOf(
  client: object,
  watch: ConnectWatch,
): () => Promise<void> | undefined {
  let found = known.get(client);
  if (found === undefined) {
    found = isEmitter(client) ? newFirstConnect(client, watch) : () => undefined;
    known.set(client, found);
  }
  return found;
}

function newFirstConnect(
  client: ConnectEmitter,
  watch: ConnectWatch,
): () => Promise<void> | undefined {
  let isOver = false;
  let waiting: Promise<void> | undefined;
  return () => {
    if (isOver || waiting !== undefined) return waiting;
    const state = watch.state();
    if (state === "over") isOver = true;
    if (state !== "connecting") return undefined;
    waiting = connected(client, watch).finally(() => {
      isOver = true;
      waiting = undefined;
    });
    return waiting;
  };
}

function connected(client: ConnectEmitter, watch: ConnectWatch): Promise<void> {
  const { library, readyEvent, failedEvents } = watch;
  return new Promise((resolve, reject) => {
    const listeners = new Map<string, (cause?: unknown) => void>();
    const settle = (act: () => void): void => {
      for (const [event, listener] of listeners) client.removeListener(event, listener);
      act();
    };
    const fail = (cause?: unknown): void =>
      settle(() => {
        const why = cause instanceof Error ? reasonOf(cause) : "the first connect failed";
        reject(new NotConnectedError(library, why, cause));
      });
    listeners.set(readyEvent, () => settle(resolve));
    for (const event of failedEvents) listeners.set(event, () => fail());
    // Listens for "error" only if the user also does. Without listeners, an "error" event has a
    // default effect in the libraries, for example a log line, which our listener would suppress.
    if (client.listenerCount("error") > 0 && failedEvents.length > 0) listeners.set("error", fail);
    for (const [event, listener] of listeners) client.on(event, listener);
  });
}

function isEmitter(client: object): client is ConnectEmitter {
  const { on, removeListener, listenerCount } = client as Partial<ConnectEmitter>;
  return [on, removeListener, listenerCount].every((method) => typeof method === "function");
}
