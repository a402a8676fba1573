import type { ChildProcess } from "node:child_process";
import { mkdirSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { redisCommand } from "../test/support/redis-command.ts";
import { freePort } from "../test/support/redis-port.ts";
import { crash, start } from "./children.ts";
import { ShiftedClock } from "./shifted-clock.ts";

const startMsMax = 20_000;
const commandMsMax = 5_000;
/** A script that runs for longer has every other command refused with BUSY. Redis: 5 s. */
const busyAfterMs = 100;

/** A real redis-server with an append-only file, whose process and clock can be tampered with. */
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
      // First: the file that the clock is set by is in the folder, too.
      mkdirSync(join(folder, "data"), { recursive: true });
      const server = new NodeServer(await freePort(), folder, clockLibrary);
      try {
        await server.#launch();
        return server;
      } catch (error) {
        // Somebody else took the port between the look and the start.
        if (attempt >= 5) throw error;
      }
    }
  }

  /** Sends a command straight to the server, past every link. */
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
    if (this.#child !== undefined) await crash(this.#child);
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
   * Makes background saves fail: the file they end as is a folder. From the first failed save on
   * the server refuses every write.
   */
  async failSaves(): Promise<void> {
    rmSync(this.#snapshot, { force: true });
    mkdirSync(this.#snapshot);
    await this.command("CONFIG", "SET", "save", "3600 1000000");
    await this.#saveUntil("err");
  }

  /** Ends `failSaves`: from the next save on the server takes writes again. */
  async healSaves(): Promise<void> {
    rmdirSync(this.#snapshot);
    await this.#saveUntil("ok");
    await this.command("CONFIG", "SET", "save", "");
  }

  /** The append-only files, oldest first: every change in the order in which it was made. */
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
      ["--auto-aof-rewrite-percentage", "0", "--daemonize", "no", "--logfile", "redis.log"],
      ["--busy-reply-threshold", String(busyAfterMs)],
    );
    const child = start("redis-server", args, {
      cwd: this.#folder,
      stdio: "ignore",
      env: this.#clock.env,
    });
    this.#child = child;
    const deadline = performance.now() + startMsMax;
    while (performance.now() < deadline && child.exitCode === null && child.pid !== undefined) {
      if (await this.#answers(child)) return;
      await sleep(10);
    }
    await crash(child);
    throw new Error(`redis-server on port ${this.port} did not start`);
  }

  async #answers(child: ChildProcess): Promise<boolean> {
    try {
      const info = String(await redisCommand(this.port, ["INFO"], 1_000));
      // It tells about itself before it has read its data, and refuses everything else.
      // A whole line: `async_loading` has the same end.
      return info.includes(`process_id:${child.pid}\r\n`) && info.includes("\nloading:0\r\n");
    } catch {
      return false;
    }
  }
}
