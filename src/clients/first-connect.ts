import { NotConnectedError } from "./contract.ts";

/** The part of a client's event emitter used here. */
export interface ConnectEmitter {
  on(event: string, listener: (cause?: unknown) => void): unknown;
  removeListener(event: string, listener: (cause?: unknown) => void): unknown;
  listenerCount(event: string): number;
}

/** `idle`: connecting has not begun. `over`: connected now or earlier, or the connect failed. */
export type ConnectState = "idle" | "connecting" | "over";

/** Describes how a client library shows its first connect. */
export interface ConnectWatch {
  readonly library: string;
  readonly state: () => ConnectState;
  /** Event that means the client is usable. */
  readonly readyEvent: string;
  /** Events that mean one attempt failed or the client was closed. The client may still retry. */
  readonly failedEvents: readonly string[];
}

/** Shared state per client, because several connections may be made from one client. */
const known = new WeakMap<object, () => Promise<void> | undefined>();

/**
 * Returns the `firstConnect` method of `RedisConnection` for `client`. All its listeners are
 * removed from the client when the first of them was called.
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
    // An "error" event without listeners has a default effect in the libraries (for example a log
    // line). Listen only if the user does, so that our listener does not suppress it.
    if (client.listenerCount("error") > 0 && failedEvents.length > 0) listeners.set("error", fail);
    for (const [event, listener] of listeners) client.on(event, listener);
  });
}

/** An AggregateError (host with several addresses) has no message: its code is used instead. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "the first connect failed";
  const { message, code } = cause as NodeJS.ErrnoException;
  return message === "" ? (code ?? cause.name) : message;
}

function isEmitter(client: object): client is ConnectEmitter {
  const { on, removeListener, listenerCount } = client as Partial<ConnectEmitter>;
  return [on, removeListener, listenerCount].every((method) => typeof method === "function");
}
