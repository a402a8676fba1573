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
 * Limit for the address space of a database, enough for half a million locks. The file on disk is
 * only as large as its contents.
 */
const mapBytes = 256 * 1024 * 1024;

/**
 * Limit for the repetitions of a transaction that would undo a commit (see `CommitGuard`). One is
 * needed only if another process opens the database at the same moment.
 */
const turnsMax = 1_000;

const makingPrefix = "making-";
const abandonedMs = 3_600_000;

/** Thrown if the database has vanished: all locks in it are lost. */
export class ReplacedError extends StoreError {}

/** Database that is open in this process. All `Environment` objects of one directory share it. */
interface Shared {
  readonly database: LmdbDatabase;
  readonly guard: CommitGuard;
  /**
   * Inode of the file. Each transaction compares it with the inode at the path, because the file
   * may be deleted while it is open.
   */
  readonly inode: bigint;
  users: number;
  closed: Promise<void> | undefined;
}

/**
 * Databases that are open in this process, by path. LMDB must not open a file twice in one process:
 * closing it once would drop the file locks of both. The map is stored under a global symbol, so
 * that two copies of this package share it.
 */
const registry = Symbol.for("holdfast.embedded.databases.1");
const holder = globalThis as unknown as { [registry]?: Map<string, Shared> };
const databases: Map<string, Shared> = (holder[registry] ??= new Map());

/** Access of one manager to the database of a directory. */
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

  /** True if `directory` has a database of the machine's current boot. */
  static exists(directory: string, { bootId }: Machine): boolean {
    return existsSync(join(bootFolder(directory, bootId), databaseName));
  }

  /**
   * Opens the database of `directory`, which must exist and have no symbolic links in its path. If
   * `mayMake` is true, creates a missing database.
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
   * Runs `work` in one write transaction: its changes are stored completely or not at all, and no
   * other process writes meanwhile. Reads use a write transaction as well: if a process is killed
   * inside a read transaction, LMDB cannot reuse the old pages.
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

  /** Ends this access. If no other access to the database is left, closes the database. */
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

  /**
   * Removes the databases of earlier boots. Must run before the first lock of this boot is taken.
   */
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

/**
 * Returns the open database of `path` and counts one more user of it. If the database is being
 * closed, waits for the end of that and opens it again.
 */
async function use(path: string, open: () => Shared): Promise<Shared> {
  let shared = databases.get(path);
  while (shared?.closed !== undefined) {
    await shared.closed;
    if (databases.get(path) === shared) databases.delete(path);
    shared = databases.get(path);
  }
  shared ??= open();
  databases.set(path, shared);
  // The user is counted before any other call can run, so that the last other user cannot close the
  // database in between.
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

/** Closes the database. Never rejects, because nothing uses the database any more. */
async function closeDatabase({ database, guard }: Shared): Promise<void> {
  try {
    await database.close();
  } catch {
    // The error is ignored, because nothing uses the database any more.
  } finally {
    guard.close();
  }
}

/**
 * Returns the options of the database. A database contains only the locks of one boot, so it need
 * not survive a power failure, and commits do not wait for the disk. If a process dies, its commits
 * are kept, because the kernel has the pages. Without a boot id, one database serves all boots, so
 * each commit waits for the disk.
 */
function optionsFor({ bootId }: Machine): {
  encoding: "string";
  noSync: boolean;
  mapSize: number;
} {
  return { encoding: "string", noSync: bootId !== undefined, mapSize: mapBytes };
}

/**
 * Creates the database in a temporary folder, then renames the folder: if several processes created
 * one LMDB file at the same time, they would damage it.
 */
async function makeDatabase(
  lmdb: LmdbPackage,
  directory: string,
  folder: string,
  machine: Machine,
): Promise<void> {
  if (existsSync(join(folder, databaseName))) return;
  removeAbandoned(directory);
  // `mkdir`, because `mkdtemp` would shut out other users of the system, whatever the umask is.
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
    // If another process has created the database first, this process uses that database.
    if (!existsSync(join(folder, databaseName))) throw error;
  }
}

/**
 * `Date.now`, stored when this module is loaded, because fake timers of a test replace it later.
 */
const wallMs = Date.now;

/** Removes temporary folders of processes that died while they created a database. */
function removeAbandoned(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(makingPrefix)) continue;
    const path = join(directory, name);
    const madeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (madeMs === undefined || wallMs() - madeMs < abandonedMs) continue;
    rmSync(path, { recursive: true, force: true });
  }
}
