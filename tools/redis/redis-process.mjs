// @ts-check
/** Starts `redis-server` with given arguments: a server, a sentinel, or one with other clocks. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning, killChild, startChild } from "../processes/children.mjs";
import { redisCommand } from "./redis-connection.mjs";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

const startMsMax = 30_000;

/**
 * Resolves when the process executes commands. Rejects with the end of `redis.log` if it does not
 * start. The child does not keep this process alive.
 *
 * @param {number} port
 * @param {string} folder in which it runs
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 */
export async function spawnRedis(port, folder, args, env = process.env) {
  const child = startChild("redis-server", args, { cwd: folder, stdio: "ignore", env });
  /** @type {Error | undefined} */
  let failure;
  child.once("error", (error) => {
    failure = error;
  });
  child.unref();
  const deadline = performance.now() + startMsMax;
  while (performance.now() < deadline) {
    if (failure !== undefined) throw failure;
    if (child.exitCode !== null || child.signalCode !== null) break;
    if (await executes(port, child.pid)) return child;
    await sleep(10);
  }
  if (isRunning(child)) await killChild(child);
  throw new Error(`redis-server on port ${port} did not start:\n${logTail(folder)}`);
}

/**
 * True if this very process executes commands, and not another one that took the port first. A
 * server that loads its data refuses PING.
 *
 * @param {number} port
 * @param {number | undefined} pid
 */
async function executes(port, pid) {
  try {
    if ((await redisCommand(port, ["PING"], 2_000)) !== "PONG") return false;
    const info = String(await redisCommand(port, ["INFO", "server"], 2_000));
    return info.includes(`process_id:${pid}\r\n`);
  } catch (error) {
    // A server with a password is ready when it refuses.
    return error instanceof Error && error.message.startsWith("NOAUTH");
  }
}

/** @param {string} folder */
function logTail(folder) {
  try {
    return readFileSync(join(folder, "redis.log"), "utf8").split("\n").slice(-15).join("\n");
  } catch {
    return "(no log)";
  }
}
