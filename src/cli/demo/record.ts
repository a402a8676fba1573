import type { DemoEvent } from "./events.ts";

/** The events so far, in the order in which they happened. */
export class Record {
  readonly #events: DemoEvent[] = [];
  readonly #listeners = new Set<(event: DemoEvent) => void>();

  get events(): readonly DemoEvent[] {
    return this.#events;
  }

  /** Told by different processes, so one may come a moment after a later one. */
  add(event: DemoEvent): void {
    let place = this.#events.length;
    while (place > 0 && (this.#events[place - 1]?.atMs ?? 0) > event.atMs) place -= 1;
    this.#events.splice(place, 0, event);
    for (const listener of this.#listeners) listener(event);
  }

  /** Calls `listener` with each new event until the function returned is called. */
  listen(listener: (event: DemoEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The next event for which `wanted` answers true. Rejects when it does not come in time. */
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
