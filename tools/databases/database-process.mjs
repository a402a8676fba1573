// @ts-check
/** Starting and ending the processes of database servers that log "ready" and listen on a port. */

import { accessSync, constants } from "node:fs";
import { createConnection } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning, killChild, startChild } from "../processes/children.mjs";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

const startMsMax = 60_000;
const logMax = 4_000;

/**
 * Starts a server and waits until it accepts connections. The child does not keep this process
 * alive.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {import("node:child_process").SpawnOptions} options
 * @param {{ port: number, signal?: NodeJS.Signals }} server the signal ends it with this process
 */
export async function startDatabase(program, args, options, { port, signal }) {
  const stdio = /** @type {const} */ (["ignore", "pipe", "pipe"]);
  const child = startChild(program, args, { ...options, stdio: [...stdio] }, signal);
  let log = "";
  child.stderr?.on("data", (chunk) => {
    log = (log + String(chunk)).slice(-logMax);
  });
  child.once("error", (error) => {
    log += String(error);
  });
  const deadline = performance.now() + startMsMax;
  while (!(log.includes("ready") && (await accepts(port)))) {
    if (performance.now() > deadline || !isRunning(child)) {
      await killChild(child);
      throw new Error(`${program} on port ${port} did not start:\n${log}`);
    }
    await sleep(50);
  }
  unref(child);
  return child;
}

/** Lets this process end while the child runs. @param {ChildProcess} child */
function unref(child) {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) {
    /** @type {{ unref?: () => void } | null} */ (/** @type {unknown} */ (stream))?.unref?.();
  }
}

/** True if a connection is accepted. @param {number} port @returns {Promise<boolean>} */
export function accepts(port) {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Returns the folders of the PATH, then others. @param {readonly string[]} more */
export function programFolders(...more) {
  return [...(process.env["PATH"] ?? "").split(delimiter), ...more];
}

/** @param {string} folder @param {string} name */
export function hasProgram(folder, name) {
  try {
    accessSync(join(folder, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
