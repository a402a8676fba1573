// @ts-check
/** Postgres servers in temporary folders. */

import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chownSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../network/free-port.mjs";
import { isRunning, killChild, makeFolder, removeFolder } from "../processes/children.mjs";
import { hasProgram, programFolders, startDatabase } from "./database-process.mjs";

/**
 * @typedef {object} PostgresServer
 * @property {string} host
 * @property {number} port
 * @property {string} user
 * @property {string} database
 * @property {string} url
 * @property {() => Promise<void>} stop
 * @property {() => Promise<void>} kill ends all its processes as a crash would
 * @property {() => Promise<void>} restart starts it again on its data and port
 * @property {() => void} freeze stops all its processes, until `resume`
 * @property {() => void} resume
 * @property {() => Promise<PostgresServer>} copy starts a standby on a copy of the data as it is
 *   now. It receives no later writes. `SELECT pg_promote()` makes it a primary.
 */

/**
 * Starts one server, and waits until it accepts connections. Without durability, unless
 * `settings` say otherwise.
 *
 * @param {readonly string[]} [settings] such as "fsync=on"
 * @returns {Promise<PostgresServer>}
 */
export async function startPostgres(settings = []) {
  const { folder, as } = ownFolder();
  try {
    const initial = ["-U", "holdfast", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    const args = ["-D", join(folder, "data"), ...initial];
    execFileSync(join(findPrograms("initdb", "postgres"), "initdb"), args, {
      ...as,
      stdio: "pipe",
    });
    return await startIn(folder, as, settings);
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
}

/** @typedef {{ uid?: number, gid?: number, cwd: string, env: NodeJS.ProcessEnv }} As */

/** Creates a folder that the account of the server owns. */
function ownFolder() {
  const owner = unprivilegedOwner();
  const folder = makeFolder("holdfast-postgres-");
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  return { folder, as: { ...owner, cwd: folder, env: { ...process.env, HOME: folder } } };
}

/**
 * @param {string} folder
 * @param {As} as
 * @param {readonly string[]} settings
 * @returns {Promise<PostgresServer>}
 */
async function startIn(folder, as, settings) {
  const port = await freePort();
  const all = [...settingsOf(folder, port), ...settings];
  const args = ["-D", join(folder, "data"), ...all.flatMap((setting) => ["-c", setting])];
  // SIGQUIT is an immediate shutdown, which also ends the sessions and their shared memory.
  const server = { port, signal: /** @type {const} */ ("SIGQUIT") };
  const start = () =>
    startDatabase(join(findPrograms("initdb", "postgres"), "postgres"), args, as, server);
  let child = await start();
  /** @type {readonly number[]} */
  let frozen = [];
  return {
    host: "127.0.0.1",
    port,
    user: "holdfast",
    database: "postgres",
    url: `postgres://holdfast@127.0.0.1:${port}/postgres`,
    async stop() {
      await shutDown(child);
      removeFolder(folder);
    },
    async kill() {
      const sessions = childrenOf(child);
      await killChild(child);
      signalAll(sessions, "SIGKILL");
      while (signalAll(sessions, 0)) await sleep(10);
    },
    async restart() {
      child = await start();
    },
    freeze() {
      frozen = [Number(child.pid), ...childrenOf(child)];
      signalAll(frozen, "SIGSTOP");
    },
    resume() {
      signalAll(frozen, "SIGCONT");
    },
    async copy() {
      const target = ownFolder();
      const data = join(target.folder, "data");
      const from = ["-h", "127.0.0.1", "-p", String(port), "-U", "holdfast"];
      const how = ["-D", data, "-c", "fast", "-X", "stream", "--no-sync"];
      await promisify(execFile)(
        join(findPrograms("pg_basebackup"), "pg_basebackup"),
        [...from, ...how],
        target.as,
      );
      writeFileSync(join(data, "standby.signal"), "");
      return await startIn(target.folder, target.as, settings);
    },
  };
}

/**
 * Returns the processes of a server besides the first.
 *
 * @param {import("node:child_process").ChildProcess} child
 */
function childrenOf({ pid }) {
  const { stdout } = spawnSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return stdout.split("\n").map(Number).filter(Boolean);
}

/**
 * True if a process was there to receive the signal.
 *
 * @param {readonly number[]} pids
 * @param {NodeJS.Signals | 0} signal
 */
function signalAll(pids, signal) {
  let received = false;
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
      received = true;
    } catch {
      // It has ended.
    }
  }
  return received;
}

/**
 * Waits for clients that are closing, and after a while ends those that are still open.
 *
 * @param {import("node:child_process").ChildProcess} child
 */
async function shutDown(child) {
  if (!isRunning(child)) return;
  child.ref();
  const exited = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  child.kill("SIGTERM");
  const impatient = setTimeout(() => child.kill("SIGINT"), 2_000);
  await exited;
  clearTimeout(impatient);
}

/** @param {string} folder @param {number} port */
function settingsOf(folder, port) {
  return [
    "listen_addresses=127.0.0.1",
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=60",
    "logging_collector=off",
    // Detects a deadlock soon, because a test that makes one waits for it.
    "deadlock_timeout=100ms",
  ];
}

/**
 * Returns the folder of these programs, which on Debian is not in the PATH.
 *
 * @param {...string} names
 */
function findPrograms(...names) {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
  const config = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" });
  const folders = programFolders(
    ...versions.map((version) => join(base, version, "bin")),
    ...(config.status === 0 ? [config.stdout.trim()] : []),
  );
  const found = folders.find((each) => names.every((name) => hasProgram(each, name)));
  if (found === undefined) throw new Error(`${names.join(" and ")} not found`);
  return found;
}

/** Returns an account without rights, because Postgres refuses to run as root. */
export function unprivilegedOwner() {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  // 65534 is the usual account without rights.
  const account =
    accounts.find(([name]) => name === "postgres") ?? accounts.find(([, , uid]) => uid === "65534");
  if (account === undefined) throw new Error("found no account to run Postgres as, besides root");
  return { uid: Number(account[2]), gid: Number(account[3]) };
}
