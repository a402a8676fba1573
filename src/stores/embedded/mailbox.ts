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
/** Read letters are thrown away when there are so many. */
const bytesMax = 64 * 1024;
const chunkBytes = 4_096;

/**
 * A file by which other processes tell this one which of its waits should try again: they append
 * its number, and the system tells us that the file has changed. A letter can get lost (a full
 * disk, a system that loses events), so nothing rests on one.
 */
export class Mailbox {
  readonly name: string;
  readonly #path: string;
  readonly #file: number;
  readonly #watcher: FSWatcher;
  readonly #onLetter: (wait: number) => void;
  /** Letters begin here, after the name of the owner. */
  readonly #start: number;
  #position: number;
  #rest = "";
  #closed = false;

  /** Throws where the system has no watchers left, or no file can be made. */
  constructor(folder: string, machine: Machine, onLetter: (wait: number) => void) {
    const mail = join(folder, folderName);
    mkdirSync(mail, { recursive: true });
    removeAbandoned(mail, machine);
    this.name = randomUUID();
    this.#path = join(mail, this.name);
    this.#onLetter = onLetter;
    this.#file = openSync(this.#path, "wx+");
    try {
      // Whose it is, so that somebody can throw it away when that process is dead.
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
    // What is written just now gets lost; the wait it was for tries again by itself.
    if (this.#position > bytesMax) {
      ftruncateSync(this.#file, this.#start);
      this.#position = this.#start;
    }
    for (const wait of new Set(letters)) this.#onLetter(Number(wait));
  }
}

/** Never throws: whoever is gone needs no letter. */
export function post(folder: string, mailbox: string, wait: number): void {
  let file: number | undefined;
  try {
    // Without making it: its owner may just have taken it away.
    const path = join(folder, folderName, mailbox);
    file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
    writeSync(file, `${wait}\n`);
  } catch {
    // The wait tries again by itself.
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Left by processes that were killed. */
function removeAbandoned(mail: string, machine: Machine): void {
  for (const name of readdirSync(mail)) {
    const path = join(mail, name);
    try {
      const [owner = ""] = readFileSync(path, "latin1").split("\n", 1);
      if (machine.isDead(JSON.parse(owner) as ProcessIdentity)) rmSync(path, { force: true });
    } catch {
      // Just being made, or just being removed.
    }
  }
}
