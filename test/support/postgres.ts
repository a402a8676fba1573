import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { accessSync, chownSync, constants, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { readdirSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../tools/network/free-port.mjs";

/** A real Postgres server of its own, in a temporary directory, gone with the test process. */
export interface PostgresServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly url: string;
  stop(): Promise<void>;
}

const running = new Map<ChildProcess, string>();

process.once("exit", () => {
  for (const [child, directory] of running) {
    // Immediate shutdown: takes the sessions and the shared memory along, which SIGKILL would not.
    child.kill("SIGQUIT");
    rmSync(directory, { recursive: true, force: true });
  }
});

/** Starts one server without durability and waits until it takes connections. */
export async function startPostgres(): Promise<PostgresServer> {
  const bin = findPrograms();
  const owner = unprivilegedOwner();
  const directory = mkdtempSync(join(tmpdir(), "holdfast-postgres-"));
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
  const data = join(directory, "data");
  const as = { ...owner, cwd: directory, env: { ...process.env, HOME: directory } };
  execFileSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "holdfast", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    { ...as, stdio: "pipe" },
  );
  const port = await freePort();
  const settings = [
    "listen_addresses=127.0.0.1",
    `port=${port}`,
    `unix_socket_directories=${directory}`,
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=60",
    "logging_collector=off",
    // Finds a deadlock soon; a test that makes one must not wait for it.
    "deadlock_timeout=100ms",
  ];
  const args = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])];
  const child = spawn(join(bin, "postgres"), args, { ...as, stdio: ["ignore", "pipe", "pipe"] });
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
    user: "holdfast",
    database: "postgres",
    url: `postgres://holdfast@127.0.0.1:${port}/postgres`,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.ref();
        // Waits for clients that are just closing; ends what is still open after a while.
        child.kill("SIGTERM");
        const impatient = setTimeout(() => child.kill("SIGINT"), 2_000);
        await exited;
        clearTimeout(impatient);
      }
      running.delete(child);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A server that outlives its test must not keep the test process alive; nor may its output. */
export function unref(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) {
    (stream as unknown as { unref?: () => void } | null)?.unref?.();
  }
}

export async function waitForPort(
  child: ChildProcess,
  port: number,
  log: () => string,
): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline && child.exitCode === null && child.pid !== undefined) {
    if (log().includes("ready") && (await accepts(port))) return;
    await sleep(50);
  }
  child.kill("SIGKILL");
  throw new Error(`${child.spawnfile} on port ${port} did not start:\n${log()}`);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** The folder of `initdb` and `postgres`, which Debian keeps off the PATH. */
function findPrograms(): string {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
  const config = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" });
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    ...versions.map((version) => join(base, version, "bin")),
    ...(config.status === 0 ? [config.stdout.trim()] : []),
  ];
  const found = folders.find(
    (folder) => isExecutable(join(folder, "initdb")) && isExecutable(join(folder, "postgres")),
  );
  if (found === undefined) throw new Error("initdb and postgres were not found");
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Postgres refuses to run as root; then any account without rights will do. */
function unprivilegedOwner(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const account =
    accounts.find(([name]) => name === "postgres") ?? accounts.find(([name]) => name === "nobody");
  if (account === undefined) throw new Error("found no account to run Postgres as, besides root");
  return { uid: Number(account[2]), gid: Number(account[3]) };
}
