// @ts-check
/**
 * Child processes and temporary folders that end with this process, however it ends: a run that
 * crashes or is interrupted leaves no server behind.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

/** @type {Map<ChildProcess, NodeJS.Signals>} with the signal that ends each of them */
const running = new Map();
/** @type {Set<string>} */
const folders = new Set();

function cleanUp() {
  for (const [child, signal] of running) child.kill(signal);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

let isWatching = false;

function cleanUpAtExit() {
  if (isWatching) return;
  isWatching = true;
  process.once("exit", cleanUp);
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
    process.prependOnceListener(signal, () => {
      // This listener is the first, so it still sees those that run once. Others decide whether the
      // process ends. If it does, "exit" cleans up.
      if (process.listenerCount(signal) > 0) return;
      cleanUp();
      // This listener is removed, so the signal now has its usual effect.
      process.kill(process.pid, signal);
    });
  }
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 * @param {import("node:child_process").SpawnOptions} options
 * @param {NodeJS.Signals} [signal] ends the child if this process ends
 */
export function startChild(program, args, options, signal = "SIGKILL") {
  cleanUpAtExit();
  const child = spawn(program, args, options);
  running.set(child, signal);
  child.once("exit", () => running.delete(child));
  // A program that is not there has no exit.
  child.on("error", () => running.delete(child));
  return child;
}

/** True if the process was started and has not ended. @param {ChildProcess} child */
export function isRunning(child) {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/**
 * Kills the child as a crash would, and waits until the process is gone.
 *
 * @param {ChildProcess} child
 */
export async function killChild(child) {
  if (!isRunning(child)) return;
  child.ref();
  const exited = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  child.kill("SIGKILL");
  await exited;
}

/** Creates a temporary folder. @param {string} prefix of its name */
export function makeFolder(prefix) {
  cleanUpAtExit();
  const folder = mkdtempSync(join(tmpdir(), prefix));
  folders.add(folder);
  return folder;
}

/** Removes a folder made by `makeFolder`. Does nothing for all others. @param {string} folder */
export function removeFolder(folder) {
  if (!folders.delete(folder)) return;
  rmSync(folder, { recursive: true, force: true });
}
