import { InvalidOptionError } from "./errors.ts";
import type { Diagnostics } from "./ports.ts";
import { loggable } from "./report/loggable.ts";

/**
 * Passes the events of one object (a manager, a candidate of an election, a schedule) to listeners
 * and to the diagnostics channel `holdfast:<name>`. perf: an event without a listener costs almost
 * nothing.
 */
export class Listeners<Events extends Record<keyof Events, object>> {
  readonly #diagnostics: Diagnostics;
  readonly #names: readonly (keyof Events & string)[] | undefined;
  readonly #listeners = new Map<keyof Events, Set<(event: never) => void>>();

  /** With `names`, `on` refuses other names. */
  constructor(diagnostics: Diagnostics, names?: readonly (keyof Events & string)[]) {
    this.#diagnostics = diagnostics;
    this.#names = names;
  }

  /** Adds a listener. Returns a function that removes it. Throws InvalidOptionError. */
  on<Name extends keyof Events & string>(
    name: Name,
    listener: (event: Events[Name]) => void,
  ): () => void {
    if (this.#names?.includes(name) === false) {
      throw new InvalidOptionError("name", `one of the events ${this.#names.join(", ")}`, name);
    }
    if (typeof listener !== "function") {
      throw new InvalidOptionError("listener", "a function", listener);
    }
    let listeners = this.#listeners.get(name);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(name, listeners);
    }
    // A new function for each call of `on`: a listener that is added twice is then called twice,
    // and each of the two is removed separately.
    const added = (event: Events[Name]): void => listener(event);
    listeners.add(added);
    return () => {
      listeners.delete(added);
    };
  }

  /** True if the event has a listener. Check this before you build an event that costs much. */
  wants(name: keyof Events & string): boolean {
    const listeners = this.#listeners.get(name);
    return (
      (listeners !== undefined && listeners.size > 0) || this.#diagnostics.hasSubscribers(name)
    );
  }

  /**
   * Calls all listeners. If one throws, reports its error and still calls the others. Returns false
   * if the event had neither a listener nor a subscriber.
   */
  emit<Name extends keyof Events & string>(name: Name, about: Events[Name]): boolean {
    if (!this.wants(name)) return false;
    const event = loggable(about);
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        (listener as (event: Events[Name]) => void)(event);
      } catch (error) {
        // A user's listener must not turn a granted lease into a failed call.
        this.#diagnostics.listenerFailed(error);
      }
    }
    if (this.#diagnostics.hasSubscribers(name)) this.#diagnostics.publish(name, event);
    return true;
  }
}
