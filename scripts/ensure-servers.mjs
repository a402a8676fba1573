// @ts-check
/**
 * Makes sure that the server programs for the tests are installed. If a program is missing it is
 * installed where that is possible (root on Debian or Ubuntu); otherwise the output says what to
 * install. No server is started here; each test file starts its own.
 */

import { spawnSync } from "node:child_process";
import {
  accessSync,
  constants,
  existsSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";

const redisMajorMin = 7;
const policyPath = "/usr/sbin/policy-rc.d";

/**
 * For each server: the Debian package, its name on other systems, and a check that returns the
 * problem, or undefined.
 *
 * @type {readonly { name: string, debian: string, elsewhere: string, wrong: () => string | undefined }[]}
 */
const servers = [
  {
    name: `Redis ${redisMajorMin} or later`,
    debian: "redis-server",
    elsewhere: "redis",
    wrong: wrongWithRedis,
  },
  {
    name: "PostgreSQL",
    debian: "postgresql",
    elsewhere: "postgresql (server)",
    wrong: () => missing(["initdb", "postgres"], postgresFolders()),
  },
  {
    name: "PgBouncer",
    debian: "pgbouncer",
    elsewhere: "pgbouncer",
    wrong: () => missing(["pgbouncer"], []),
  },
  {
    name: "MariaDB",
    debian: "mariadb-server",
    elsewhere: "mariadb (server)",
    wrong: () => missing(["mariadbd", "mariadb-install-db"], []),
  },
];

main();

function main() {
  const lacking = servers.filter((server) => server.wrong() !== undefined);
  if (lacking.length === 0) return;

  const packages = lacking.map((server) => server.debian);
  if (mayInstall()) {
    console.log(`Installing servers for the tests: ${packages.join(" ")}`);
    install(packages);
  }

  const stillLacking = lacking.flatMap((server) => {
    const wrong = server.wrong();
    return wrong === undefined ? [] : [{ ...server, problem: wrong }];
  });
  if (stillLacking.length === 0) return;
  console.error("The tests need servers that are not installed here:\n");
  for (const { name, problem, debian, elsewhere } of stillLacking) {
    console.error(`  ${name}: ${problem}`);
    console.error(`    Debian, Ubuntu: package ${debian}; elsewhere: ${elsewhere}\n`);
  }
  console.error(`  sudo apt-get install -y ${stillLacking.map((s) => s.debian).join(" ")}`);
  process.exitCode = 1;
}

/** @returns {string | undefined} */
function wrongWithRedis() {
  const program = find("redis-server", []);
  if (program === undefined) return "redis-server was not found";
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  const version = /\bv=(\d+)[.\d]*/.exec(stdout ?? "");
  if (version === null) return "redis-server --version printed no version";
  return Number(version[1]) >= redisMajorMin ? undefined : `found version ${version[0].slice(2)}`;
}

/**
 * @param {readonly string[]} programs
 * @param {readonly string[]} folders where to look besides PATH
 */
function missing(programs, folders) {
  const absent = programs.filter((program) => find(program, folders) === undefined);
  return absent.length === 0 ? undefined : `${absent.join(", ")} not found`;
}

/** Returns folders with PostgreSQL programs: Debian does not put them on the PATH. */
function postgresFolders() {
  const base = "/usr/lib/postgresql";
  return existsSync(base) ? readdirSync(base).map((version) => join(base, version, "bin")) : [];
}

/**
 * @param {string} program
 * @param {readonly string[]} folders
 */
function find(program, folders) {
  // Server programs are often in sbin, which is not on every user's PATH.
  const onPath = (process.env["PATH"] ?? "").split(delimiter);
  return [...onPath, "/usr/sbin", "/usr/local/sbin", ...folders]
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, program))
    .find(isExecutable);
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function mayInstall() {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  if (find("apt-get", []) === undefined || !existsSync("/etc/os-release")) return false;
  return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync("/etc/os-release", "utf8"));
}

/** @param {readonly string[]} packages */
function install(packages) {
  // Debian starts a service after its installation, unless this policy forbids it.
  const forbidStart = !existsSync(policyPath);
  // An interrupt ends apt-get. This process continues, to remove its policy.
  const ignore = () => {};
  process.on("SIGINT", ignore).on("SIGTERM", ignore);
  if (forbidStart) writeFileSync(policyPath, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    const wait = ["-o", "DPkg::Lock::Timeout=120"];
    const updated = aptGet([...wait, "update"]);
    if (!updated) console.error("apt-get update failed; trying with the lists as they are");
    aptGet([...wait, "install", "-y", "--no-install-recommends", ...packages]);
  } finally {
    if (forbidStart) rmSync(policyPath, { force: true });
    process.off("SIGINT", ignore).off("SIGTERM", ignore);
  }
}

/** @param {readonly string[]} args */
function aptGet(args) {
  const { status } = spawnSync("apt-get", args, {
    // Hides the output of the installation. Errors are on stderr.
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
  });
  return status === 0;
}
