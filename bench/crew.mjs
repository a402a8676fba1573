// @ts-check
/** The processes of contenders: each request has a time limit, and each process is ended. */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** @import { ChildProcess } from "node:child_process" */
/** @import { Reply } from "./types.ts" */

const program = fileURLToPath(new URL("child.mjs", import.meta.url));
/** @type {Set<ChildProcess>} */
const running = new Set();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** The answer did not come in time. */
export class CutError extends Error {
  /** @param {string} task @param {number} boundMs */
  constructor(task, boundMs) {
    super(`${task}: no answer within ${Math.round(boundMs / 1_000)} s, cut`);
  }
}

export class Worker {
  /** @type {ChildProcess} */
  #child;
  #lastId = 0;
  /** @type {Map<number, { resolve(value: unknown): void, reject(error: Error): void }>} */
  #waiting = new Map();
  /** @type {Promise<unknown>} */
  #exited;

  /** @param {string} contender @param {readonly string[]} [flags] of Node */
  constructor(contender, flags = []) {
    const child = spawn(process.execPath, [...flags, program, contender], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#child = child;
    running.add(child);
    this.#exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        running.delete(child);
        for (const waiting of this.#waiting.values()) {
          waiting.reject(new Error(`${contender} ended: ${signal ?? code}`));
        }
        this.#waiting.clear();
        resolve(undefined);
      });
    });
    child.on("message", (message) => {
      const reply = /** @type {Reply} */ (message);
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ("error" in reply) waiting?.reject(new Error(reply.error));
      else waiting?.resolve(reply.result);
    });
  }

  /**
   * @template T
   * @param {string} task
   * @param {unknown} input
   * @param {number} boundMs
   * @returns {Promise<T>}
   */
  ask(task, input, boundMs) {
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new CutError(task, boundMs));
      }, boundMs);
      this.#waiting.set(id, {
        resolve(value) {
          clearTimeout(timer);
          resolve(/** @type {T} */ (value));
        },
        reject(error) {
          clearTimeout(timer);
          reject(error);
        },
      });
      this.#child.send({ id, task, input }, (error) => {
        if (error !== null) this.#waiting.get(id)?.reject(error);
      });
    });
  }

  /** Kills the process at once, with all its locks. */
  async kill() {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  /** Closes the process in an orderly way, or kills it if that takes too long. */
  async end() {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      await this.ask("close", undefined, 3_000).catch(() => undefined);
    }
    await this.kill();
  }
}
