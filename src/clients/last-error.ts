import { errorMonitor } from "node:events";
import { NotConnectedError } from "./contract.ts";

/** The part of a client's event emitter that is used here. */
interface ErrorEmitter {
  on(event: symbol, listener: (error?: unknown) => void): unknown;
  once(event: string, listener: () => void): unknown;
}

/** Result of `lastErrorOf` for each client. Several connections of one client share it. */
const known = new WeakMap<object, () => unknown>();

/**
 * Returns a function that returns the last error that the client has emitted since it was ready.
 *
 * Listens to `errorMonitor` and not to "error": a listener of "error" would suppress the default
 * effect of an error, which is a log line in ioredis and a crash in node-redis. ioredis emits no
 * error if the user has no listener; it logs the error itself.
 */
export function lastErrorOf(client: object): () => unknown {
  let found = known.get(client);
  if (found === undefined) {
    found = isEmitter(client) ? watched(client) : () => undefined;
    known.set(client, found);
  }
  return found;
}

function watched(client: ErrorEmitter): () => unknown {
  let last: unknown;
  const forget = (): void => {
    last = undefined;
  };
  client.on(errorMonitor, (error) => {
    if (last === undefined) client.once("ready", forget);
    last = error ?? new Error("no reason given");
  });
  return () => last;
}

/** Returns the error for a command that was not sent, with the reason that the client gave. */
export function notConnectedTo(client: object, library: string, status: string): NotConnectedError {
  const cause = lastErrorOf(client)();
  return cause === undefined
    ? new NotConnectedError(library, status)
    : new NotConnectedError(library, `${status}: ${reasonOf(cause)}`, cause);
}

/**
 * Returns the text of an error of a client. An AggregateError (host with several addresses) has no
 * message, so the text is that of its first error.
 */
export function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { message, code } = cause as NodeJS.ErrnoException;
  if (message !== "") return message.replaceAll(/\s+/g, " ").trim();
  const [first] = cause instanceof AggregateError ? (cause.errors as unknown[]) : [];
  return first instanceof Error ? first.message : (code ?? cause.name);
}

function isEmitter(client: object): client is ErrorEmitter {
  const { on, once } = client as Partial<ErrorEmitter>;
  return typeof on === "function" && typeof once === "function";
}
