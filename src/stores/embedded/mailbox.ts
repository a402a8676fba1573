import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  type FSWatcher,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  watch,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Machine, ProcessIdentity } from "./machine.ts";

const folderName = "mail";
/**
 * Limit for the size of the file. A longer file is truncated after all its lines have been read.
 */
const bytesMax = 64 * 1024;
const chunkBytes = 4_096;

/**
 * File through which other processes notify the waits of this process (its calls that wait for a
 * lock). A letter is one line with the number of a wait. Other processes append letters, and the
 * system reports that the file has changed. A letter may get lost (a full disk, a system that drops
 * events), so each wait also makes attempts at intervals.
 */
export class Mailbox {
  readonly name: string;
  readonly #path: string;
  readonly #file: number;
  readonly #watcher: FSWatcher;
  readonly #onLetter: (wait: number) => void;
  /**
   * Position of the first letter. The line before it identifies the process that reads the mailbox.
   */
  readonly #start: number;
  #position: number;
  #rest = "";
  #closed = false;

  /** Throws if the system has no file watchers left, or if the file cannot be created. */
  constructor(folder: string, machine: Machine, onLetter: (wait: number) => void) {
    const mail = join(folder, folderName);
    mkdirSync(mail, { recursive: true });
    removeAbandoned(mail, machine);
    this.name = randomUUID();
    this.#path = join(mail, this.name);
    this.#onLetter = onLetter;
    this.#file = openSync(this.#path, "wx+");
    try {
      // The first line identifies this process, so that other processes can remove the file after
      // its death.
      this.#start = writeSync(this.#file, `${JSON.stringify(machine.self)}\n`);
      this.#position = this.#start;
      this.#watcher = watch(this.#path, { persistent: false }, () => this.#empty());
      this.#watcher.on("error", () => this.close());
    } catch (error) {
      closeSync(this.#file);
      rmSync(this.#path, { force: true });
      throw error;
    }
  }

  get closed(): boolean {
    return this.#closed;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watcher.close();
    closeSync(this.#file);
    rmSync(this.#path, { force: true });
  }

  #empty(): void {
    if (this.#closed) return;
    const chunk = Buffer.alloc(chunkBytes);
    const startPosition = this.#position;
    for (let count = chunkBytes; count === chunkBytes;) {
      count = readSync(this.#file, chunk, 0, chunkBytes, this.#position);
      this.#position += count;
      this.#rest += chunk.toString("latin1", 0, count);
    }
    if (this.#position === startPosition) return;
    const letters = this.#rest.split("\n");
    this.#rest = letters.pop() ?? "";
    // A letter that another process appends between the last read and this truncation gets lost.
    // The wait of that letter makes its next attempt at the end of its interval.
    if (this.#position > bytesMax) {
      ftruncateSync(this.#file, this.#start);
      this.#position = this.#start;
    }
    for (const wait of new Set(letters)) this.#onLetter(Number(wait));
  }
}

/**
 * Notifies a wait by a letter in the mailbox of its process. Never throws: that process may have
 * ended, and its waits with it.
 */
export function post(folder: string, mailbox: string, wait: number): void {
  let file: number | undefined;
  try {
    // The flags do not create a missing file, because its process may just have removed it.
    const path = join(folder, folderName, mailbox);
    file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
    writeSync(file, `${wait}\n`);
  } catch {
    // The error is ignored: without a letter, the wait makes its next attempt at the end of its
    // interval.
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Removes the mailbox files of dead processes. */
function removeAbandoned(mail: string, machine: Machine): void {
  for (const name of readdirSync(mail)) {
    const path = join(mail, name);
    try {
      const [owner = ""] = readFileSync(path, "latin1").split("\n", 1);
      if (machine.isDead(JSON.parse(owner) as ProcessIdentity)) rmSync(path, { force: true });
    } catch {
      // The file is skipped, because another process is just creating or removing it.
    }
  }
}
