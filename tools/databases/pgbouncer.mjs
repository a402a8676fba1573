// @ts-check
/** PgBouncer, a pooler in front of a Postgres server. */

import { chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../network/free-port.mjs";
import { killChild, makeFolder, removeFolder, startChild } from "../processes/children.mjs";
import { accepts, hasProgram, programFolders } from "./database-process.mjs";
import { unprivilegedOwner } from "./postgres.mjs";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @typedef {object} Pooler
 * @property {string} url
 * @property {() => Promise<void>} stop
 */

const startMsMax = 30_000;

/**
 * Starts PgBouncer in transaction mode: each transaction may run on another connection.
 *
 * @param {{ host: string, port: number, user: string, database: string }} server
 * @returns {Promise<Pooler>}
 */
export async function startPgbouncer({ host, port: serverPort, user, database }) {
  const places = programFolders("/usr/sbin", "/usr/local/sbin");
  const found = places.find((each) => hasProgram(each, "pgbouncer"));
  if (found === undefined) throw new Error("pgbouncer was not found");
  const owner = unprivilegedOwner();
  const folder = makeFolder("holdfast-pgbouncer-");
  const port = await freePort();
  const users = join(folder, "users.txt");
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(users, `"${user}" ""\n`);
  writeFileSync(
    config,
    [
      "[databases]",
      `${database} = host=${host} port=${serverPort} dbname=${database}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = trust",
      `auth_file = ${users}`,
      "pool_mode = transaction",
      // Few connections, so that clients really share them.
      "default_pool_size = 3",
      "max_client_conn = 200",
      "",
    ].join("\n"),
  );
  if (owner !== undefined) {
    for (const path of [folder, users, config]) chownSync(path, owner.uid, owner.gid);
  }
  const child = startChild(join(found, "pgbouncer"), [config], {
    ...owner,
    cwd: folder,
    stdio: "ignore",
  });
  child.unref();
  const deadline = performance.now() + startMsMax;
  while (!(await accepts(port))) {
    if (performance.now() > deadline) throw new Error(`pgbouncer did not listen on port ${port}`);
    await sleep(50);
  }
  return {
    url: `postgres://${user}@127.0.0.1:${port}/${database}`,
    async stop() {
      await killChild(child);
      removeFolder(folder);
    },
  };
}
