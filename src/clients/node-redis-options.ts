/**
 * Emitter of a disconnect event: "reconnecting" for a client, "node-reconnecting" for a Cluster.
 */
export interface DisconnectEmitter {
  on(event: string, listener: () => void): unknown;
}

export interface CommandOptions {
  readonly typeMapping: undefined;
  readonly timeout: undefined;
  readonly abortSignal: AbortSignal;
}

/**
 * Limit for empty entries at the start of the listener queue. With more, the queue is shortened.
 */
const compactAfter = 1024;

/** Result of `commandOptionsOf` for each client. Several connections of one client share it. */
const watched = new WeakMap<DisconnectEmitter, () => CommandOptions>();

/**
 * Returns a function that returns the options for each command of Holdfast. They override the
 * client's options.
 *
 * - No type mapping: replies are strings, even if the application configured other types.
 * - No timeout. perf (sequential): node-redis 6 creates an AbortSignal for each command with a
 *   timeout, which costs more than the command.
 * - One abort signal for all commands of a connection. It aborts when the connection breaks, and
 *   so rejects commands that were queued but not written. Otherwise the library would write them
 *   to the next connection, at any later time. The library itself rejects written commands.
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
 * Abort signal that keeps its listeners in a queue.
 *
 * perf (sequential): each command adds a listener, and removes it when the command is written. So
 * listeners are removed in the order in which they were added. A queue does this almost for free.
 * An EventTarget takes about as long as the command.
 */
class Breaker {
  readonly #controller = new AbortController();
  #listeners: ((() => void) | undefined)[] = [];
  /** Index of the first listener that may still be present. */
  #first = 0;

  readonly signal: AbortSignal = Object.assign(this.#controller.signal, {
    addEventListener: (_type: string, listener: () => void) => {
      this.#listeners.push(listener);
    },
    removeEventListener: (_type: string, listener: () => void) => this.#remove(listener),
  });

  abort(): void {
    this.#controller.abort();
    const listeners = this.#listeners.slice(this.#first);
    this.#clear();
    for (const listener of listeners) listener?.();
  }

  #remove(listener: () => void): void {
    const index = this.#listeners.indexOf(listener, this.#first);
    if (index === -1) return;
    this.#listeners[index] = undefined;
    if (index > this.#first) return;
    while (this.#first < this.#listeners.length && this.#listeners[this.#first] === undefined) {
      this.#first += 1;
    }
    if (this.#first === this.#listeners.length) this.#clear();
    if (this.#first < compactAfter) return;
    this.#listeners.splice(0, this.#first);
    this.#first = 0;
  }

  #clear(): void {
    this.#listeners = [];
    this.#first = 0;
  }
}
