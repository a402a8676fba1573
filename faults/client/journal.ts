import { closeSync, openSync, writeSync } from "node:fs";
import type { ToJournal } from "../history.ts";
import { nowMs } from "../monotonic.ts";

/** Writes each event at once and synchronously, so that it survives a kill in the next moment. */
export class Journal {
  readonly #who: string;
  readonly #file: number;

  constructor(path: string, who: string) {
    this.#who = who;
    this.#file = openSync(path, "a");
  }

  add(event: ToJournal, t: number = nowMs()): void {
    writeSync(this.#file, `${JSON.stringify({ t, who: this.#who, ...event })}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}
