import { isMainThread } from "node:worker_threads";
import { ClosedError, UnsupportedError } from "../../core/errors.ts";
import { existingLockDirectory, lockDirectory } from "./directory.ts";
import { Environment, ReplacedError } from "./environment.ts";
import { faultOf, type Fault } from "./faults.ts";
import { loadLmdb } from "./lmdb-package.ts";
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
  /**
   * Called when the database is closed or cannot be used. The mailbox (a file beside it through
   * which waiting calls are notified) is then useless.
   */
  readonly onLetGo: () => void;
}

/**
 * LMDB and the kernel keep file locks per process. If two threads have one database open, the first
 * thread that closes it would drop the locks of the other thread.
 */
const noWorkerThreads =
  "the embedded store works in the main thread of a process only, not in a worker thread: take " +
  "the locks in the main thread, or use child processes instead of worker threads";

/**
 * Lock directory of one manager. The first call opens its database. If the database has vanished,
 * the next call opens a new one.
 */
export class DirectoryAccess {
  readonly #options: DirectoryAccessOptions;
  #environment: Promise<Environment> | undefined;
  #closed = false;
  #pathInMemory: string | undefined;
  #lastFault: unknown;

  constructor(options: DirectoryAccessOptions) {
    this.#options = options;
  }

  /** Path of the directory as passed to the constructor. It may contain symbolic links. */
  get directory(): string {
    return this.#options.directory;
  }

  /** Path of the directory if it is in a memory file system; otherwise undefined. */
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

  /** Returns the folder of the database; undefined if the database is not open. */
  async folder(): Promise<string | undefined> {
    const opened = await this.#environment?.catch(() => undefined);
    return this.#closed ? undefined : opened?.folder;
  }

  /** Runs `work` in a transaction. Never rejects: a failure is part of the answer. */
  async transact<Result>(work: (table: Table) => Result): Promise<Answer<Result>> {
    return await this.#answer(true, (opened) => {
      opened.takeOver();
      let letters: readonly Address[] = [];
      const result = opened.transact((table) => {
        const done = work(table);
        letters = table.lettersForFreed(this.#options.clock.nowMs());
        return done;
      });
      // Notifies waiting calls after the commit, so that their attempts find the freed resources.
      for (const { mailbox, wait } of letters) post(opened.folder, mailbox, wait);
      return result;
    });
  }

  /**
   * Runs `work`, which only reads, in a transaction. Creates and removes nothing. Returns undefined
   * if there is no database, because nothing is locked then.
   */
  async look<Result>(work: (table: Table) => Result): Promise<Answer<Result> | undefined> {
    const answer = await this.#answer(false, (opened) => ({ result: opened.transact(work) }));
    if (!answer.ok) return answer;
    return answer.result === undefined ? undefined : { ok: true, ...answer.result };
  }

  async #answer<Result>(
    mayMake: true,
    use: (opened: Environment) => Result,
  ): Promise<Answer<Result>>;
  async #answer<Result>(
    mayMake: boolean,
    use: (opened: Environment) => Result,
  ): Promise<Answer<Result | undefined>>;
  async #answer<Result>(
    mayMake: boolean,
    use: (opened: Environment) => Result,
  ): Promise<Answer<Result | undefined>> {
    let opening: Promise<Environment> | undefined;
    let opened: Environment | undefined;
    try {
      if (this.#closed) throw new ClosedError();
      opening = this.#environment ??= this.#open(mayMake);
      opened = await opening;
      return { ok: true, result: opened === undefined ? undefined : use(opened) };
    } catch (cause) {
      const fault = faultOf(cause, this.#options.directory);
      this.#lastFault = fault.error;
      // If the database could not be opened, or has vanished, the next call opens it again.
      if (opened === undefined || cause instanceof ReplacedError) await this.#letGo(opening);
      return { ok: false, ...fault };
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#letGo(this.#environment);
  }

  /** Returns undefined if there is no database and `mayMake` is false. */
  #open(mayMake: boolean): Promise<Environment> | undefined {
    if (!isMainThread) throw new UnsupportedError(noWorkerThreads);
    const { directory, machine, onInMemory } = this.#options;
    const found = mayMake ? lockDirectory(directory) : existingLockDirectory(directory);
    if (!mayMake) {
      // Throws if the package is missing, even if there is no database to read yet.
      loadLmdb();
      if (found === undefined || !Environment.exists(found.path, machine())) return undefined;
    }
    if (found === undefined) return undefined;
    const { path, inMemory } = found;
    if (inMemory && this.#pathInMemory === undefined) {
      this.#pathInMemory = path;
      onInMemory(path);
    }
    return Environment.open(path, machine(), mayMake);
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
