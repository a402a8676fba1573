import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { unref, waitForPort } from "./postgres.ts";
import { freePort } from "../../tools/network/free-port.mjs";

/** A real MariaDB server of its own, in a temporary directory, gone with the test process. */
export interface MariadbServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  stop(): Promise<void>;
}

const running = new Map<ChildProcess, string>();

process.once("exit", () => {
  for (const [child, directory] of running) {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
});

/** Starts one server without durability and passwords and waits until it takes connections. */
export async function startMariadb(): Promise<MariadbServer> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-mariadb-"));
  const data = join(directory, "data");
  mkdirSync(data);
  const user = `--user=${userInfo().username}`;
  const installed = spawnSync(
    findProgram("mariadb-install-db", "mysql_install_db"),
    [
      "--no-defaults",
      `--datadir=${data}`,
      // Two servers that start at the same time must not share their temporary tables.
      `--tmpdir=${directory}`,
      user,
      "--auth-root-authentication-method=normal",
      "--skip-test-db",
      "--skip-name-resolve",
    ],
    { cwd: directory, encoding: "utf8" },
  );
  if (installed.status !== 0) {
    rmSync(directory, { recursive: true, force: true });
    throw new Error(`mariadb-install-db failed:\n${installed.stdout}\n${installed.stderr}`);
  }
  const port = await freePort();
  const child = spawn(
    findProgram("mariadbd", "mysqld"),
    [
      "--no-defaults",
      `--datadir=${data}`,
      `--tmpdir=${directory}`,
      user,
      "--bind-address=127.0.0.1",
      `--port=${port}`,
      `--socket=${join(directory, "mariadb.sock")}`,
      `--pid-file=${join(directory, "mariadb.pid")}`,
      "--skip-name-resolve",
      "--skip-log-bin",
      "--skip-grant-tables",
      // With grant tables skipped the server does not listen on TCP by default.
      "--skip-networking=0",
      "--innodb-flush-log-at-trx-commit=0",
      "--innodb-buffer-pool-size=32M",
      "--innodb-log-file-size=8M",
      "--performance-schema=OFF",
    ],
    { cwd: directory, stdio: ["ignore", "pipe", "pipe"] },
  );
  running.set(child, directory);
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4_000);
  });
  child.once("error", (error) => {
    log += String(error);
  });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
  });
  await waitForPort(child, port, () => log);
  unref(child);
  return {
    host: "127.0.0.1",
    port,
    user: "root",
    database: "mysql",
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.ref();
        // Nothing in it is worth an orderly shutdown.
        child.kill("SIGKILL");
        await exited;
      }
      running.delete(child);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function findProgram(...names: readonly string[]): string {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  for (const name of names) {
    for (const folder of folders) {
      const path = join(folder, name);
      if (isExecutable(path)) return path;
    }
  }
  throw new Error(`${names.join(" or ")} was not found`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
