/** What node-redis clients emit: alone "reconnecting", in a cluster "node-reconnecting". */
export interface DisconnectEmitter {
  on(event: string, listener: () => void): unknown;
}

export interface CommandOptions {
  readonly typeMapping: undefined;
  readonly timeout: undefined;
  readonly abortSignal: AbortSignal;
}

/** How many places of commands long written a queue of listeners may keep. */
const compactAfter = 1024;

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
 * A signal whose listeners are kept in a queue. Each command adds one and takes it away again when
 * it is written, so in the order in which it came: for a queue that is nearly free, while an
 * EventTarget takes about as long for it as the library for the command.
 */
class Breaker {
  readonly #controller = new AbortController();
  #listeners: ((() => void) | undefined)[] = [];
  /** Before this index all listeners are gone. */
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
