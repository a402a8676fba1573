import { closeSync, openSync, writeSync } from "node:fs";

/** The wall clock of one process: right at first, and adjustable from outside while it runs. */
export class ShiftedClock {
  readonly #library: string | undefined;
  readonly #file: string;

  /** Without a library the process keeps the machine's clock, and `set` has no effect. */
  constructor(library: string | undefined, file: string) {
    this.#library = library;
    this.#file = file;
    this.set(0);
  }

  /** Environment with which the process must be started. */
  get env(): NodeJS.ProcessEnv {
    if (this.#library === undefined) return process.env;
    return { ...process.env, LD_PRELOAD: this.#library, SHIFTED_CLOCK_FILE: this.#file };
  }

  /** Steps the clock to `offsetMs` from the true time, at once. */
  set(offsetMs: number): void {
    const buffer = Buffer.alloc(8);
    buffer.writeBigInt64LE(BigInt(offsetMs));
    // Written in place, because the process has this file mapped.
    const file = openSync(this.#file, "as+");
    closeSync(file);
    const writable = openSync(this.#file, "r+");
    writeSync(writable, buffer, 0, 8, 0);
    closeSync(writable);
  }
}
