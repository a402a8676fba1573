/** What node-redis clients emit: alone "reconnecting", in a cluster "node-reconnecting". */
export interface DisconnectEmitter {
  on(event: string, listener: () => void): unknown;
}

export interface CommandOptions {
  readonly typeMapping: undefined;
  readonly timeout: undefined;
  readonly abortSignal: AbortSignal;
}

/** One watch for each client, however many connections are made of it. */
const watched = new WeakMap<DisconnectEmitter, () => CommandOptions>();

/**
 * Returns what to lay over the options of the user's client for each of our commands, and only for
 * those.
 *
 * - No type mapping: replies are strings, whatever the application asked for itself.
 * - No timeout: node-redis 6 arms an AbortSignal for each command, which costs more than the
 *   command does.
 * - One signal for all commands of a connection, aborted when it breaks. It ends what was accepted
 *   but not yet written, which the library would otherwise write to the next connection, whenever
 *   that comes. What was written already is rejected by the library itself.
 */
export function commandOptionsOf(
  client: DisconnectEmitter,
  disconnectEvent: string,
): () => CommandOptions {
  const known = watched.get(client);
  if (known !== undefined) return known;
  let breaker = new Breaker();
  let options = optionsWith(breaker.signal);
  client.on(disconnectEvent, () => {
    const broken = breaker;
    breaker = new Breaker();
    options = optionsWith(breaker.signal);
    broken.abort();
  });
  const current = () => options;
  watched.set(client, current);
  return current;
}

function optionsWith(abortSignal: AbortSignal): CommandOptions {
  return { typeMapping: undefined, timeout: undefined, abortSignal };
}

/**
 * A signal whose listeners are kept in a plain set. Each command adds one and takes it away again,
 * and an EventTarget takes about as long for that as the library for the command.
 */
class Breaker {
  readonly #controller = new AbortController();
  readonly #listeners = new Set<() => void>();

  readonly signal: AbortSignal = Object.assign(this.#controller.signal, {
    addEventListener: (_type: string, listener: () => void) => {
      this.#listeners.add(listener);
    },
    removeEventListener: (_type: string, listener: () => void) => {
      this.#listeners.delete(listener);
    },
  });

  abort(): void {
    this.#controller.abort();
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}
