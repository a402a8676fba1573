import type { ChildProcess } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { redisCommand } from "../test/support/redis-command.ts";
import { freePort } from "../test/support/redis-port.ts";
import { crash, start } from "./children.ts";

const startMsMax = 20_000;
const commandMsMax = 5_000;

/** A real redis-server with an append-only file, whose process and clock can be tampered with. */
export class NodeServer {
  readonly port: number;
  readonly #folder: string;
  readonly #data: string;
  readonly #clockLibrary: string | undefined;
  #child: ChildProcess | undefined;

  private constructor(port: number, folder: string, clockLibrary: string | undefined) {
    this.port = port;
    this.#folder = folder;
    this.#data = join(folder, "data");
    this.#clockLibrary = clockLibrary;
  }

  static async start(folder: string, clockLibrary?: string): Promise<NodeServer> {
    for (let attempt = 1; ; attempt += 1) {
      const server = new NodeServer(await freePort(), folder, clockLibrary);
      mkdirSync(server.#data, { recursive: true });
      server.setClock(0);
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
    const buffer = Buffer.alloc(8);
    buffer.writeBigInt64LE(BigInt(offsetMs));
    // Written in place: the server has this very file mapped.
    const file = openSync(this.#clockFile, "as+");
    closeSync(file);
    const writable = openSync(this.#clockFile, "r+");
    writeSync(writable, buffer, 0, 8, 0);
    closeSync(writable);
  }

  /** The append-only files, oldest first: every change in the order in which it was made. */
  appendOnlyFiles(): string[] {
    const folder = join(this.#data, "appendonlydir");
    const names = readdirSync(folder).filter((name) => name.endsWith(".incr.aof"));
    return names.sort().map((name) => join(folder, name));
  }

  get #clockFile(): string {
    return join(this.#folder, "clock-offset");
  }

  async #launch(): Promise<void> {
    const env =
      this.#clockLibrary === undefined
        ? process.env
        : {
            ...process.env,
            LD_PRELOAD: this.#clockLibrary,
            SHIFTED_CLOCK_FILE: this.#clockFile,
          };
    const args = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#data].concat(
      ["--save", "", "--appendonly", "yes", "--appendfsync", "no"],
      ["--auto-aof-rewrite-percentage", "0", "--daemonize", "no", "--logfile", "redis.log"],
    );
    const child = start("redis-server", args, { cwd: this.#folder, stdio: "ignore", env });
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
