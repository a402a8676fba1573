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
/** Limit. A file of this size is truncated after its letters have been read. */
const bytesMax = 64 * 1024;
const chunkBytes = 4_096;

/**
 * A file through which other processes notify the waits of this one. They append the number of a
 * wait, and the system reports that the file has changed. A notification may get lost (a full disk,
 * a system that drops events), so nothing depends on it.
 */
export class Mailbox {
  readonly name: string;
  readonly #path: string;
  readonly #file: number;
  readonly #watcher: FSWatcher;
  readonly #onLetter: (wait: number) => void;
  /** Position of the first letter, after the identity of the owner. */
  readonly #start: number;
  #position: number;
  #rest = "";
  #closed = false;

  /** Throws if the system has no watchers left, or the file cannot be created. */
  constructor(folder: string, machine: Machine, onLetter: (wait: number) => void) {
    const mail = join(folder, folderName);
    mkdirSync(mail, { recursive: true });
    removeAbandoned(mail, machine);
    this.name = randomUUID();
    this.#path = join(mail, this.name);
    this.#onLetter = onLetter;
    this.#file = openSync(this.#path, "wx+");
    try {
      // Names the owner, so that others can remove the file when that process is dead.
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
    // A letter that is written at this moment gets lost. Its wait makes an attempt by itself.
    if (this.#position > bytesMax) {
      ftruncateSync(this.#file, this.#start);
      this.#position = this.#start;
    }
    for (const wait of new Set(letters)) this.#onLetter(Number(wait));
  }
}

/** Notifies a wait. Never throws: if its process is gone, there is nothing to notify. */
export function post(folder: string, mailbox: string, wait: number): void {
  let file: number | undefined;
  try {
    // Does not create the file: its owner may just have removed it.
    const path = join(folder, folderName, mailbox);
    file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
    writeSync(file, `${wait}\n`);
  } catch {
    // The wait makes an attempt by itself.
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Removes the files of processes that were killed. */
function removeAbandoned(mail: string, machine: Machine): void {
  for (const name of readdirSync(mail)) {
    const path = join(mail, name);
    try {
      const [owner = ""] = readFileSync(path, "latin1").split("\n", 1);
      if (machine.isDead(JSON.parse(owner) as ProcessIdentity)) rmSync(path, { force: true });
    } catch {
      // The file is just being created or removed.
    }
  }
}
