import type { ChildProcess } from "node:child_process";
import { mkdirSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { redisCommand } from "../tools/redis/redis-connection.mjs";
import { freePort } from "../tools/network/free-port.mjs";
import { killChild } from "../tools/processes/children.mjs";
import { spawnRedis } from "../tools/redis/redis-process.mjs";
import { ShiftedClock } from "./shifted-clock.ts";

const commandMsMax = 5_000;
/**
 * Time after which a running script makes the server refuse every other command with BUSY. The
 * default of Redis is 5 s.
 */
const busyAfterMs = 100;

/** A real redis-server with an append-only file, whose process and clock can be disturbed. */
export class NodeServer {
  readonly port: number;
  readonly #folder: string;
  readonly #data: string;
  readonly #clock: ShiftedClock;
  #child: ChildProcess | undefined;

  private constructor(port: number, folder: string, clockLibrary: string | undefined) {
    this.port = port;
    this.#folder = folder;
    this.#data = join(folder, "data");
    this.#clock = new ShiftedClock(clockLibrary, join(folder, "clock-offset"));
  }

  static async start(folder: string, clockLibrary?: string): Promise<NodeServer> {
    for (let attempt = 1; ; attempt += 1) {
      // Created first, because the file that sets the clock is in the folder, too.
      mkdirSync(join(folder, "data"), { recursive: true });
      const server = new NodeServer(await freePort(), folder, clockLibrary);
      try {
        await server.#launch();
        return server;
      } catch (error) {
        // Another process took the port between the check and the start.
        if (attempt >= 5) throw error;
      }
    }
  }

  /** Sends a command straight to the server, without a link. */
  command(...command: readonly string[]): Promise<unknown> {
    return redisCommand(this.port, command, commandMsMax);
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    if (this.#child !== undefined) await killChild(this.#child);
  }

  async restart(data: "empty" | "kept"): Promise<void> {
    await this.kill();
    if (data === "empty") {
      for (const name of readdirSync(this.#data))
        rmSync(join(this.#data, name), { recursive: true });
    }
    await this.#launch();
  }

  /** Steps the wall clock of the server to `offsetMs` from the true time, at once. */
  setClock(offsetMs: number): void {
    this.#clock.set(offsetMs);
  }

  /**
   * Makes background saves fail: a folder has the name of the file. From the first failed save on
   * the server refuses every write.
   */
  async failSaves(): Promise<void> {
    rmSync(this.#snapshot, { force: true });
    mkdirSync(this.#snapshot);
    await this.command("CONFIG", "SET", "save", "3600 1000000");
    await this.#saveUntil("err");
  }

  /** Ends `failSaves`: after the next save the server accepts writes again. */
  async healSaves(): Promise<void> {
    rmdirSync(this.#snapshot);
    await this.#saveUntil("ok");
    await this.command("CONFIG", "SET", "save", "");
  }

  /** Returns the append-only files, oldest first, with every change in order. */
  appendOnlyFiles(): string[] {
    const folder = join(this.#data, "appendonlydir");
    const names = readdirSync(folder).filter((name) => name.endsWith(".incr.aof"));
    return names.sort().map((name) => join(folder, name));
  }

  get #snapshot(): string {
    return join(this.#data, "dump.rdb");
  }

  async #saveUntil(status: "ok" | "err"): Promise<void> {
    const deadline = performance.now() + commandMsMax;
    await this.command("BGSAVE");
    while (performance.now() < deadline) {
      const info = String(await this.command("INFO", "persistence"));
      const isOver = info.includes("rdb_bgsave_in_progress:0");
      if (isOver && info.includes(`rdb_last_bgsave_status:${status}`)) return;
      await sleep(10);
    }
    throw new Error(`a save on port ${this.port} did not end with ${status}`);
  }

  async #launch(): Promise<void> {
    const args = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#data].concat(
      ["--save", "", "--appendonly", "yes", "--appendfsync", "no"],
      ["--auto-aof-rewrite-percentage", "0", "--daemonize", "no"],
      ["--logfile", join(this.#folder, "redis.log")],
      ["--busy-reply-threshold", String(busyAfterMs)],
    );
    this.#child = await spawnRedis(this.port, this.#folder, args, this.#clock.env);
  }
}
