import { InvalidOptionError } from "./errors.ts";
import type { Diagnostics } from "./ports.ts";
import { loggable } from "./report/loggable.ts";

/**
 * Listeners of one object that is built on a manager, such as a candidate of an election. Events
 * also go to the diagnostics channel `holdfast:<name>`.
 */
export class Listeners<Events extends Record<keyof Events, object>> {
  readonly #diagnostics: Diagnostics;
  readonly #listeners: Readonly<Record<keyof Events, Set<(event: never) => void>>>;

  constructor(diagnostics: Diagnostics, names: readonly (keyof Events)[]) {
    this.#diagnostics = diagnostics;
    const entries = names.map((name) => [name, new Set()] as const);
    this.#listeners = Object.fromEntries(entries) as never;
  }

  /** Adds a listener. Returns a function that removes it. Throws InvalidOptionError. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void {
    const listeners = Object.hasOwn(this.#listeners, name) ? this.#listeners[name] : undefined;
    if (listeners === undefined) {
      const known = Object.keys(this.#listeners).join(", ");
      throw new InvalidOptionError("name", `one of the events ${known}`, name);
    }
    if (typeof listener !== "function") {
      throw new InvalidOptionError("listener", "a function", listener);
    }
    // A new function for each call: a listener that is added twice is called twice.
    const added = (event: Events[Name]): void => listener(event);
    listeners.add(added);
    return () => void listeners.delete(added);
  }

  /**
   * Calls all listeners. If one throws, reports its error and still calls the others. Returns false
   * if the event had neither a listener nor a subscriber.
   */
  emit<Name extends keyof Events & string>(name: Name, about: Events[Name]): boolean {
    const event = loggable(about);
    for (const listener of this.#listeners[name]) {
      try {
        (listener as (event: Events[Name]) => void)(event);
      } catch (error) {
        this.#diagnostics.listenerFailed(error);
      }
    }
    const isPublished = this.#diagnostics.hasSubscribers(name);
    if (isPublished) this.#diagnostics.publish(name, event);
    return isPublished || this.#listeners[name].size > 0;
  }
}
