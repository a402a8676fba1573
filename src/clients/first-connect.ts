import { NotConnectedError } from "./contract.ts";

/** What is used of a client's events. */
export interface ConnectEmitter {
  on(event: string, listener: (cause?: unknown) => void): unknown;
  removeListener(event: string, listener: (cause?: unknown) => void): unknown;
  listenerCount(event: string): number;
}

/** `idle`: it has not begun to connect. `over`: it is connected, or was, or has failed. */
export type ConnectState = "idle" | "connecting" | "over";

/** How a library shows its first connect. */
export interface ConnectWatch {
  readonly library: string;
  readonly state: () => ConnectState;
  /** The client is usable. */
  readonly readyEvent: string;
  /** It failed once, or was closed; it may still try again. */
  readonly failedEvents: readonly string[];
}

/** One for each client, however many connections are made of it. */
const known = new WeakMap<object, () => Promise<void> | undefined>();

/**
 * Returns what `RedisConnection.firstConnect` is for `client`. Its listeners are removed from the
 * client as soon as one of them was called.
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
      settle(() => reject(new NotConnectedError(library, reasonOf(cause))));
    listeners.set(readyEvent, () => settle(resolve));
    for (const event of failedEvents) listeners.set(event, () => fail());
    // Libraries report an error that has no listener in their own way: ours must not count as one.
    if (client.listenerCount("error") > 0 && failedEvents.length > 0) listeners.set("error", fail);
    for (const [event, listener] of listeners) client.on(event, listener);
  });
}

/** Several errors in one, of a host with several addresses, have no text of their own. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "the first connect failed";
  const { message, code } = cause as NodeJS.ErrnoException;
  return message === "" ? (code ?? cause.name) : message;
}

function isEmitter(client: object): client is ConnectEmitter {
  const { on, removeListener, listenerCount } = client as Partial<ConnectEmitter>;
  return [on, removeListener, listenerCount].every((method) => typeof method === "function");
}
