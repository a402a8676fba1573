// @ts-check
/** MariaDB servers in temporary folders. */

import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { freePort } from "../network/free-port.mjs";
import { killChild, makeFolder, removeFolder } from "../processes/children.mjs";
import { hasProgram, programFolders, startDatabase } from "./database-process.mjs";

/**
 * @typedef {object} MariadbServer
 * @property {string} host
 * @property {number} port
 * @property {string} user
 * @property {string} database
 * @property {() => Promise<void>} stop
 */

/**
 * Starts one server without durability and passwords, and waits until it accepts connections.
 *
 * @returns {Promise<MariadbServer>}
 */
export async function startMariadb() {
  const folder = makeFolder("holdfast-mariadb-");
  try {
    install(folder);
    const port = await freePort();
    const args = [...commonArgs(folder), ...serverArgs(folder, port)];
    const child = await startDatabase(
      findProgram("mariadbd", "mysqld"),
      args,
      { cwd: folder },
      {
        port,
      },
    );
    return {
      host: "127.0.0.1",
      port,
      user: "root",
      database: "mysql",
      async stop() {
        // Its data is not worth an orderly shutdown.
        await killChild(child);
        removeFolder(folder);
      },
    };
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
}

/** @param {string} folder */
function install(folder) {
  mkdirSync(join(folder, "data"));
  const { status, stdout, stderr } = spawnSync(
    findProgram("mariadb-install-db", "mysql_install_db"),
    [
      ...commonArgs(folder),
      "--auth-root-authentication-method=normal",
      "--skip-test-db",
      "--skip-name-resolve",
    ],
    { cwd: folder, encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`mariadb-install-db failed:\n${stdout}\n${stderr}`);
}

/** @param {string} folder */
function commonArgs(folder) {
  return [
    "--no-defaults",
    `--datadir=${join(folder, "data")}`,
    // Two servers that start at the same time must not share their temporary tables.
    `--tmpdir=${folder}`,
    `--user=${userInfo().username}`,
  ];
}

/** @param {string} folder @param {number} port */
function serverArgs(folder, port) {
  return [
    "--bind-address=127.0.0.1",
    `--port=${port}`,
    `--socket=${join(folder, "mariadb.sock")}`,
    `--pid-file=${join(folder, "mariadb.pid")}`,
    "--skip-name-resolve",
    "--skip-log-bin",
    "--skip-grant-tables",
    // With grant tables skipped, the server does not listen on TCP by default.
    "--skip-networking=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--performance-schema=OFF",
  ];
}

/** @param {string[]} names of one program, the usual first */
function findProgram(...names) {
  const folders = programFolders("/usr/sbin", "/usr/local/sbin");
  for (const name of names) {
    const folder = folders.find((each) => hasProgram(each, name));
    if (folder !== undefined) return join(folder, name);
  }
  throw new Error(`${names.join(" or ")} was not found`);
}
