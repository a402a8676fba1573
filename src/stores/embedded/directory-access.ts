import { ClosedError } from "../../core/errors.ts";
import { lockDirectory } from "./directory.ts";
import { Environment, ReplacedError } from "./environment.ts";
import { faultOf, type Fault } from "./faults.ts";
import type { MachineClock } from "./machine-clock.ts";
import type { Machine } from "./machine.ts";
import { post } from "./mailbox.ts";
import type { Table } from "./table.ts";
import type { Address } from "./wait-queue.ts";

export type Answer<Result> =
  | { readonly ok: true; readonly result: Result }
  | ({ readonly ok: false } & Fault);

export interface DirectoryAccessOptions {
  readonly directory: string;
  readonly machine: () => Machine;
  readonly clock: MachineClock;
  /** Called once if the directory is in a memory file system. */
  readonly onInMemory: (path: string) => void;
  /** Called when the directory is no longer open: what was kept in it is void. */
  readonly onLetGo: () => void;
}

/** The directory of one manager. Opened by the first call, and again after it has vanished. */
export class DirectoryAccess {
  readonly #options: DirectoryAccessOptions;
  #environment: Promise<Environment> | undefined;
  #closed = false;
  #pathInMemory: string | undefined;
  #lastFault: unknown;

  constructor(options: DirectoryAccessOptions) {
    this.#options = options;
  }

  /** Path of the directory if it is in a memory file system. */
  get pathInMemory(): string | undefined {
    return this.#pathInMemory;
  }

  get lastFault(): unknown {
    return this.#lastFault;
  }

  forgetFault(): void {
    this.#lastFault = undefined;
  }

  get isOpen(): boolean {
    return this.#environment !== undefined && !this.#closed;
  }

  /** Returns the folder of the database; undefined if it is not open. */
  async folder(): Promise<string | undefined> {
    const opened = await this.#environment?.catch(() => undefined);
    return this.#closed ? undefined : opened?.folder;
  }

  /** Runs `work` in a transaction. Never rejects: a failure is part of the answer. */
  async transact<Result>(work: (table: Table) => Result): Promise<Answer<Result>> {
    let opening: Promise<Environment> | undefined;
    let opened: Environment | undefined;
    try {
      if (this.#closed) throw new ClosedError();
      opening = this.#environment ??= this.#open();
      opened = await opening;
      let letters: readonly Address[] = [];
      const result = opened.transact((table) => {
        const done = work(table);
        letters = table.lettersForFreed(this.#options.clock.nowMs());
        return done;
      });
      // After the commit, so that the waits see what has become free.
      for (const { mailbox, wait } of letters) post(opened.folder, mailbox, wait);
      return { ok: true, result };
    } catch (cause) {
      const fault = faultOf(cause, this.#options.directory);
      this.#lastFault = fault.error;
      // The next call opens again what could not be opened, or has vanished.
      if (opened === undefined || cause instanceof ReplacedError) await this.#letGo(opening);
      return { ok: false, ...fault };
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#letGo(this.#environment);
  }

  async #open(): Promise<Environment> {
    const { directory, machine, onInMemory } = this.#options;
    const { path, inMemory } = lockDirectory(directory);
    if (inMemory && this.#pathInMemory === undefined) {
      this.#pathInMemory = path;
      onInMemory(path);
    }
    return await Environment.open(path, machine());
  }

  async #letGo(opening: Promise<Environment> | undefined): Promise<void> {
    if (opening === undefined) return;
    if (this.#environment === opening) {
      this.#environment = undefined;
      this.#options.onLetGo();
    }
    const opened = await opening.catch(() => undefined);
    await opened?.release();
  }
}
