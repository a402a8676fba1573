import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { Failure } from "../failure.ts";

/**
 * Shell script in front of the command (the gate).
 *
 * The watchdog must receive the pid of the command before the command runs: otherwise the command
 * would run unguarded if holdfast died in between. So a shell starts first. This shell waits for a
 * line on descriptor 3 and then becomes the command with the same pid. If holdfast dies before it
 * sends the line, the shell ends.
 */
const script =
  'IFS= read -r holdfast_gate <&3 || exit 125; exec 3<&-; unset holdfast_gate; exec "$@"';

/** Names of environment variables that a shell may drop instead of passing them on. */
const oddName = /[^A-Za-z0-9_]|^[0-9]/;

export const gateDescriptor = 3;

/** True if a shell passes the whole environment on to the command. */
export function isPassedOn(env: NodeJS.ProcessEnv): boolean {
  return !Object.entries(env).some(([name, value]) => value !== undefined && oddName.test(name));
}

export function gated(file: string, args: readonly string[]): readonly string[] {
  return ["/bin/sh", "-c", script, "holdfast", file, ...args];
}

/** Checks that the command exists and is executable, before any wait for the lock. */
export function checkExecutable(file: string): void {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const paths = file.includes("/") ? [file] : folders.map((folder) => join(folder || ".", file));
  const there = paths.filter(isFile);
  if (there.length === 0) throw new Failure("notFound", `${file}: command not found`);
  if (there.some(isExecutable)) return;
  throw new Failure("cannotRun", `${file}: cannot be executed: permission denied`);
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
