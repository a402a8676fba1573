// @ts-check
/** Postgres servers in temporary folders. */

import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../network/free-port.mjs";
import { isRunning, makeFolder, removeFolder } from "../processes/children.mjs";
import { hasProgram, programFolders, startDatabase } from "./database-process.mjs";

/**
 * @typedef {object} PostgresServer
 * @property {string} host
 * @property {number} port
 * @property {string} user
 * @property {string} database
 * @property {string} url
 * @property {() => Promise<void>} stop
 */

/**
 * Starts one server without durability, and waits until it accepts connections.
 *
 * @returns {Promise<PostgresServer>}
 */
export async function startPostgres() {
  const programs = findPrograms();
  const owner = unprivilegedOwner();
  const folder = makeFolder("holdfast-postgres-");
  try {
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
    const as = { ...owner, cwd: folder, env: { ...process.env, HOME: folder } };
    const data = join(folder, "data");
    const initial = ["-U", "holdfast", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    execFileSync(join(programs, "initdb"), ["-D", data, ...initial], { ...as, stdio: "pipe" });
    const port = await freePort();
    const args = ["-D", data, ...settingsOf(folder, port).flatMap((setting) => ["-c", setting])];
    // SIGQUIT is an immediate shutdown, which also ends the sessions and their shared memory.
    const server = { port, signal: /** @type {const} */ ("SIGQUIT") };
    const child = await startDatabase(join(programs, "postgres"), args, as, server);
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
    };
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
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

/** Returns the folder of `initdb` and `postgres`, which on Debian is not in the PATH. */
function findPrograms() {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
  const config = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" });
  const folders = programFolders(
    ...versions.map((version) => join(base, version, "bin")),
    ...(config.status === 0 ? [config.stdout.trim()] : []),
  );
  const found = folders.find((each) => hasProgram(each, "initdb") && hasProgram(each, "postgres"));
  if (found === undefined) throw new Error("initdb and postgres were not found");
  return found;
}

/** Returns an account without rights, because Postgres refuses to run as root. */
function unprivilegedOwner() {
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
