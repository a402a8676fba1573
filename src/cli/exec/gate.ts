import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { Failure } from "../failure.ts";

/**
 * Returns the shell script in front of the command (the gate).
 *
 * The watchdog must receive the pid of the command before the command runs: otherwise the command
 * would run unguarded if holdfast died in between. So a shell starts first. This shell waits for a
 * line on the descriptor `gate` and then becomes the command with the same pid. If holdfast dies
 * before it sends the line, the shell ends.
 */
function script(gate: number): string {
  const read = `IFS= read -r holdfast_gate <&${gate} || exit 125; exec ${gate}<&-`;
  return `${read}; unset holdfast_gate; exec "$@"`;
}

/** Names of environment variables that a shell may drop instead of passing them on. */
const oddName = /[^A-Za-z0-9_]|^[0-9]/;

/** Greatest descriptor that every shell can name. */
const gateMax = 9;

/** Returns the first descriptor that the command does not inherit; undefined if there is none. */
export function freeGate(inherited: readonly number[]): number | undefined {
  for (let gate = 3; gate <= gateMax; gate += 1) if (!inherited.includes(gate)) return gate;
  return undefined;
}

/** True if a shell passes the whole environment on to the command. */
export function isPassedOn(env: NodeJS.ProcessEnv): boolean {
  return !Object.entries(env).some(([name, value]) => value !== undefined && oddName.test(name));
}

export function gated(gate: number, file: string, args: readonly string[]): readonly string[] {
  return ["/bin/sh", "-c", script(gate), "holdfast", file, ...args];
}

/** Checks that the command exists and is executable, before any wait for the lock. */
export function checkExecutable(file: string): void {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const paths = file.includes("/") ? [file] : folders.map((folder) => join(folder || ".", file));
  const there = paths.filter(isFile);
  if (there.length === 0) throw new Failure("notFound", `${file}: command not found`);
  const found = there.find(isExecutable);
  if (found !== undefined) return checkInterpreter(found, file);
  throw new Failure("cannotRun", `${file}: cannot be executed: permission denied`);
}

/** Throws Failure if the script names a program that does not exist: `#!/no/such/program`. */
function checkInterpreter(path: string, file: string): void {
  const program = /^#![ \t]*(\/\S+)/.exec(startOf(path))?.[1];
  if (program === undefined || isFile(program)) return;
  throw new Failure("cannotRun", `${file}: cannot be executed: there is no ${program}`);
}

/** Returns the first bytes; empty if this user may run the file, but not read it. */
function startOf(path: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    const bytes = Buffer.alloc(256);
    return bytes.toString("latin1", 0, readSync(descriptor, bytes));
  } catch {
    return "";
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * True if `path` is a file. False if the path cannot be searched, because shells skip such folders
 * of PATH.
 */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
