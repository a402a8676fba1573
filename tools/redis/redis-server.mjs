// @ts-check
/** Real Redis servers on free ports, for tests, benchmarks and examples. */

import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../network/free-port.mjs";
import { killChild, makeFolder, removeFolder } from "../processes/children.mjs";
import { redisCommand } from "./redis-connection.mjs";
import { spawnRedis } from "./redis-process.mjs";

/**
 * @typedef {object} RedisServerOptions
 * @property {readonly string[]} [args] appended to the defaults, so `["--appendonly", "yes"]` wins
 * @property {number} [port] a free port by default
 * @property {string} [dir] a temporary folder by default, removed by `stop()`
 */
/**
 * @typedef {object} RestartOptions
 * @property {readonly string[]} [args] replaces the arguments of the start
 * @property {boolean} [empty] deletes what an append-only file or a snapshot has kept
 */

const portAttempts = 10;

/** A `redis-server` process that can be paused, killed and restarted. */
export class RedisServer {
  /** @readonly */
  host = "127.0.0.1";
  #args;
  #child;

  /**
   * @param {number} port
   * @param {string} dir
   * @param {readonly string[]} args
   * @param {import("node:child_process").ChildProcess} child
   */
  constructor(port, dir, args, child) {
    /** @readonly */
    this.port = port;
    /** @readonly */
    this.dir = dir;
    /** @readonly */
    this.url = `redis://127.0.0.1:${port}`;
    this.#args = args;
    this.#child = child;
  }

  /** Id of the present process, which changes with `restart()`. */
  get pid() {
    return this.#child.pid ?? -1;
  }

  /** Sends a command over a socket of its own. Rejects for an error. @param {string[]} command */
  command(...command) {
    return redisCommand(this.port, command);
  }

  /** Freezes the server: it keeps its connections and sends no replies. */
  pause() {
    this.#child.kill("SIGSTOP");
  }

  resume() {
    this.#child.kill("SIGCONT");
  }

  /** Kills the process as a crash would and waits until it is gone. */
  kill() {
    return killChild(this.#child);
  }

  /**
   * Kills the process if it still runs and starts another on the same port.
   *
   * @param {RestartOptions} options
   */
  async restart({ args = this.#args, empty = false } = {}) {
    await this.kill();
    this.#args = args;
    if (empty) {
      for (const name of readdirSync(this.dir)) rmSync(join(this.dir, name), { recursive: true });
    }
    this.#child = await spawnRedis(this.port, this.dir, serverArgs(this.port, args));
  }

  /** Ends the process and removes its temporary folder. Does nothing the second time. */
  async stop() {
    await this.kill();
    removeFolder(this.dir);
  }

  async [Symbol.asyncDispose]() {
    await this.stop();
  }
}

/**
 * Starts one server, without persistence unless `args` enable it, and waits until it replies.
 *
 * @param {RedisServerOptions} options
 */
export async function startRedis(options = {}) {
  const { args = [] } = options;
  for (let attempt = 1; ; attempt += 1) {
    const dir = options.dir ?? makeFolder("holdfast-redis-");
    const port = options.port ?? (await freePort());
    try {
      const child = await spawnRedis(port, dir, serverArgs(port, args));
      return new RedisServer(port, dir, args, child);
    } catch (error) {
      removeFolder(dir);
      // Another process took the port between the check and the start. Only a port that was chosen
      // here may change.
      const collided = String(error).includes("Address already in use");
      if (!collided || options.port !== undefined || attempt >= portAttempts) throw error;
    }
  }
}

/**
 * Starts `count` independent servers side by side.
 *
 * @param {number} count
 * @param {Pick<RedisServerOptions, "args">} options
 */
export function startRedisServers(count, options = {}) {
  return Promise.all(Array.from({ length: count }, () => startRedis(options)));
}

/** @param {number} port @param {readonly string[]} args */
function serverArgs(port, args) {
  const base = ["--port", String(port), "--bind", "127.0.0.1", "--logfile", "redis.log"];
  return [...base, "--save", "", "--appendonly", "no", "--daemonize", "no", ...args];
}
