import type { ChildProcess } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { redisCommand } from "./redis-command.ts";
import { freePort } from "./redis-port.ts";
import { killRedis, makeDirectory, removeDirectory, spawnRedis } from "./redis-process.ts";

export interface RedisOptions {
  /** Appended to the defaults, so `["--appendonly", "yes"]` wins over them. */
  readonly args?: readonly string[];
  /** A free loopback port when left out. */
  readonly port?: number;
  /** A fresh temporary directory, removed by `stop()`, when left out. */
  readonly dir?: string;
}

export interface RestartOptions {
  /** Replaces the arguments the server was started with. */
  readonly args?: readonly string[];
  /** Forgets what an append-only file or a snapshot had kept. @default false */
  readonly empty?: boolean;
}

const portAttempts = 10;

/** A real `redis-server` process that a test may pause, kill and restart. */
export class RedisServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly dir: string;
  readonly url: string;
  #args: readonly string[];
  #child: ChildProcess;

  constructor(port: number, dir: string, args: readonly string[], child: ChildProcess) {
    this.port = port;
    this.dir = dir;
    this.url = `redis://127.0.0.1:${port}`;
    this.#args = args;
    this.#child = child;
  }

  /** Of the present process: another one after `restart()`. */
  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Sends one command over a socket of its own; an error reply rejects. */
  command(...command: readonly string[]): Promise<unknown> {
    return redisCommand(this.port, command);
  }

  /** Freezes the server: it keeps its connections and answers nothing. */
  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  /** Kills the process as a crash would and waits until it is gone. */
  kill(): Promise<void> {
    return killRedis(this.#child);
  }

  /** Kills the process if it still runs and starts another on the same port. */
  async restart(options: RestartOptions = {}): Promise<void> {
    await this.kill();
    this.#args = options.args ?? this.#args;
    if (options.empty === true) {
      for (const name of readdirSync(this.dir)) rmSync(join(this.dir, name), { recursive: true });
    }
    this.#child = await spawnRedis(this.port, this.dir, serverArgs(this.port, this.#args));
  }

  /** Ends the process and removes its temporary directory. Calling it twice is fine. */
  async stop(): Promise<void> {
    await this.kill();
    removeDirectory(this.dir);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Starts one server, without persistence unless `args` ask for it, and waits until it answers. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const args = options.args ?? [];
  for (let attempt = 1; ; attempt += 1) {
    const dir = options.dir ?? makeDirectory();
    const port = options.port ?? (await freePort());
    try {
      const child = await spawnRedis(port, dir, serverArgs(port, args));
      return new RedisServer(port, dir, args, child);
    } catch (error) {
      removeDirectory(dir);
      // Someone else took the port between the look and the start: only a port we chose may change.
      const collided = String(error).includes("Address already in use");
      if (!collided || options.port !== undefined || attempt >= portAttempts) throw error;
    }
  }
}

/** Starts `count` independent servers side by side. */
export function startRedisServers(
  count: number,
  options: Pick<RedisOptions, "args"> = {},
): Promise<RedisServer[]> {
  return Promise.all(Array.from({ length: count }, () => startRedis(options)));
}

function serverArgs(port: number, args: readonly string[]): string[] {
  const base = ["--port", String(port), "--bind", "127.0.0.1", "--logfile", "redis.log"];
  return [...base, "--save", "", "--appendonly", "no", "--daemonize", "no", ...args];
}
