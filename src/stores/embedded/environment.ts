import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { StoreError, UnsupportedError } from "../../core/errors.ts";
import { CommitGuard } from "./commit-guard.ts";
import { checkDatabaseFile } from "./database-file.ts";
import { loadLmdb, type LmdbDatabase, type LmdbPackage } from "./lmdb-package.ts";
import type { Machine } from "./machine.ts";
import {
  bootFolder,
  databaseName,
  otherBoots,
  refuseLiveBoots,
  removeBoots,
} from "./other-boots.ts";
import { fillNew, Table } from "./table.ts";

/**
 * Limit of address space, enough for half a million locks. On disk, the file is as large as its
 * contents.
 */
const mapBytes = 256 * 1024 * 1024;

/** Limit of repeats. Each is needed only if another process opened the database at that moment. */
const turnsMax = 1_000;

const makingPrefix = "making-";
const abandonedMs = 3_600_000;

/** Thrown if the database has vanished: all locks in it are lost. */
export class ReplacedError extends StoreError {}

/** A database that is open in this process. All users of a directory share one. */
interface Shared {
  readonly database: LmdbDatabase;
  readonly guard: CommitGuard;
  /** Compared before each transaction: the file may be deleted while it is open. */
  readonly inode: bigint;
  users: number;
  closed: Promise<void> | undefined;
}

/**
 * Databases that are open in this process. LMDB must not open one twice: closing one of the two
 * would drop the file locks of the other. A global symbol, so that two copies of this package share
 * it.
 */
const registry = Symbol.for("holdfast.embedded.databases.1");
const holder = globalThis as unknown as { [registry]?: Map<string, Shared> };
const databases: Map<string, Shared> = (holder[registry] ??= new Map());

/** One user's access to the database of a directory. */
export class Environment {
  readonly #shared: Shared;
  readonly #path: string;
  readonly #table: Table;
  readonly #directory: string;
  readonly #machine: Machine;
  /** Folder of the database. */
  readonly folder: string;
  #tookOver = false;
  #released: Promise<void> | undefined;

  private constructor(shared: Shared, path: string, directory: string, machine: Machine) {
    this.#shared = shared;
    this.#path = path;
    this.#table = new Table(shared.database, directory, machine);
    this.#directory = directory;
    this.#machine = machine;
    this.folder = dirname(path);
  }

  /** True if this boot has a database in `directory`. */
  static exists(directory: string, { bootId }: Machine): boolean {
    return existsSync(join(bootFolder(directory, bootId), databaseName));
  }

  /**
   * Opens the database of `directory`, which must exist and have no symbolic links in its path. If
   * `mayMake`, creates the database if it is missing.
   */
  static async open(directory: string, machine: Machine, mayMake: boolean): Promise<Environment> {
    const lmdb = loadLmdb();
    const folder = bootFolder(directory, machine.bootId);
    const path = join(folder, databaseName);
    if (mayMake) await makeDatabase(lmdb, directory, folder, machine);
    const shared = await use(path, () => openDatabase(lmdb, path, machine));
    const environment = new Environment(shared, path, directory, machine);
    try {
      environment.#checkLayout();
      environment.transact((table) => table.check());
      return environment;
    } catch (error) {
      await environment.release();
      throw error;
    }
  }

  /**
   * Runs `work` in one write transaction: all of it is applied or nothing, and no other process
   * interferes. Used for reading, too: a killed reader of LMDB would keep old pages alive.
   */
  transact<Result>(work: (table: Table) => Result): Result {
    const { database, guard } = this.#shared;
    for (let turn = 0; turn < turnsMax; turn += 1) {
      let done: { readonly result: Result } | undefined;
      database.transactionSync(() => {
        if (!guard.isCurrent(database.getWriteTxnId())) return;
        this.#checkInPlace();
        done = { result: work(this.#table) };
      });
      if (done !== undefined) return done.result;
    }
    throw new Error("too many processes open the database at the same time");
  }

  /** Ends this user's access. The last user closes the database. */
  release(): Promise<void> {
    this.#released ??= this.#releaseNow();
    return this.#released;
  }

  async #releaseNow(): Promise<void> {
    const shared = this.#shared;
    shared.users -= 1;
    if (shared.users > 0) return;
    shared.closed = closeDatabase(shared);
    await shared.closed;
    if (databases.get(this.#path) === shared) databases.delete(this.#path);
  }

  /** Removes the databases of earlier boots. Needed before anything is locked in this one. */
  takeOver(): void {
    if (this.#tookOver) return;
    // Without a boot id, all boots share one folder.
    const hasBoots = this.#machine.bootId !== undefined;
    const others = hasBoots ? otherBoots(this.#directory, this.folder) : [];
    if (others.length > 0) {
      refuseLiveBoots(others, this.folder);
      this.transact((table) => table.skipToMark());
      removeBoots(others);
    }
    this.#tookOver = true;
  }

  #checkLayout(): void {
    const { database, guard } = this.#shared;
    for (let turn = 0; turn < turnsMax; turn += 1) {
      if (this.transact(() => guard.knowsLayout(database.getWriteTxnId()))) return;
    }
    throw new UnsupportedError(
      "this version of the package lmdb lays out its lock file in a way that the embedded store " +
        "does not know: use lmdb 3.5",
    );
  }

  #checkInPlace(): void {
    const found = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    if (found?.ino === this.#shared.inode) return;
    if (databases.get(this.#path) === this.#shared) databases.delete(this.#path);
    throw new ReplacedError(
      `${this.#path} was deleted or replaced while it was in use: the locks in it are lost`,
    );
  }
}

/** Returns the open database of `path`, with one more user. Waits for one that is being closed. */
async function use(path: string, open: () => Shared): Promise<Shared> {
  let shared = databases.get(path);
  while (shared?.closed !== undefined) {
    await shared.closed;
    if (databases.get(path) === shared) databases.delete(path);
    shared = databases.get(path);
  }
  shared ??= open();
  databases.set(path, shared);
  // Counted before any other call runs: otherwise the last user might close it in between.
  shared.users += 1;
  return shared;
}

function openDatabase(lmdb: LmdbPackage, path: string, machine: Machine): Shared {
  checkDatabaseFile(path);
  const database = lmdb.open({ path, ...optionsFor(machine) });
  const guard = new CommitGuard(path);
  const { ino: inode } = statSync(path, { bigint: true });
  return { database, guard, inode, users: 0, closed: undefined };
}

/** Never rejects: the caller has no further use for it. */
async function closeDatabase({ database, guard }: Shared): Promise<void> {
  try {
    await database.close();
  } catch {
    // Nothing of it is used any more.
  } finally {
    guard.close();
  }
}

/**
 * Options of the database. Only locks of one boot are in it, so it need not survive a power
 * failure, and commits do not wait for the disk. The death of a process does no harm: the kernel
 * has the pages. If boots cannot be distinguished, the database is kept, and each commit is synced.
 */
function optionsFor({ bootId }: Machine): {
  encoding: "string";
  noSync: boolean;
  mapSize: number;
} {
  return { encoding: "string", noSync: bootId !== undefined, mapSize: mapBytes };
}

/**
 * Creates the database in a folder of its own, then renames it: several processes that create one
 * LMDB file at the same time damage it.
 */
async function makeDatabase(
  lmdb: LmdbPackage,
  directory: string,
  folder: string,
  machine: Machine,
): Promise<void> {
  if (existsSync(join(folder, databaseName))) return;
  removeAbandoned(directory);
  // Not `mkdtemp`: it would keep other users out, whatever the umask is.
  const making = join(directory, makingPrefix + randomUUID());
  mkdirSync(making);
  try {
    const database = lmdb.open({ path: join(making, databaseName), ...optionsFor(machine) });
    try {
      database.transactionSync(() => fillNew(database, directory, machine));
    } finally {
      await database.close();
    }
    renameSync(making, folder);
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    // Another process has created it first, and that one is as good.
    if (!existsSync(join(folder, databaseName))) throw error;
  }
}

/** Stored when this module is loaded, because fake timers of a test replace it later. */
const wallMs = Date.now;

/** Removes folders of processes that died while they created a database. */
function removeAbandoned(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(makingPrefix)) continue;
    const path = join(directory, name);
    const madeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (madeMs === undefined || wallMs() - madeMs < abandonedMs) continue;
    rmSync(path, { recursive: true, force: true });
  }
}
