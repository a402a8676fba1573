import type { DemoEvent } from "./events.ts";

/** All events so far, ordered by time. */
export class Record {
  readonly #events: DemoEvent[] = [];
  readonly #listeners = new Set<(event: DemoEvent) => void>();

  get events(): readonly DemoEvent[] {
    return this.#events;
  }

  /** Adds an event in order of time; events of different processes may arrive out of order. */
  add(event: DemoEvent): void {
    let place = this.#events.length;
    while (place > 0 && (this.#events[place - 1]?.atMs ?? 0) > event.atMs) place -= 1;
    this.#events.splice(place, 0, event);
    for (const listener of this.#listeners) listener(event);
  }

  /** Calls `listener` for each new event until the returned function is called. */
  listen(listener: (event: DemoEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Resolves to the next event that `wanted` accepts. Rejects if no such event arrives within
   * `limitMs`.
   */
  next(
    what: string,
    wanted: (event: DemoEvent) => boolean,
    { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
  ): Promise<DemoEvent> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        stop();
        clearTimeout(timer);
        signal.removeEventListener("abort", aborted);
        settle();
      };
      const aborted = (): void => end(() => reject(signal.reason as Error));
      const timer = setTimeout(() => {
        end(() => reject(new Error(`waited ${limitMs / 1_000} s in vain for ${what}`)));
      }, limitMs);
      const stop = this.listen((event) => {
        if (event.kind === "failed") {
          end(() => reject(new Error(`${event.worker} failed: ${event.message}`)));
        } else if (wanted(event)) end(() => resolve(event));
      });
      if (signal.aborted) aborted();
      else signal.addEventListener("abort", aborted);
    });
  }
}
