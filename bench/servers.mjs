// @ts-check
/** Servers and connections for the benchmarks. Needs only redis-server. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as dial, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @typedef {{ port: number, stop(): Promise<void>,
 *   signal(name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void }} Server
 */

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen({ port: 0, host: "127.0.0.1" }, () => {
      const address = probe.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/**
 * @param {readonly string[]} [more] arguments after the usual ones
 * @returns {Promise<Server>}
 */
export async function startServer(more = []) {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  args.push(...more);
  const child = spawn("redis-server", args, { cwd: directory, stdio: "ignore" });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const end = () => {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  };
  process.once("exit", end);
  for (let attempt = 0; ; attempt += 1) {
    try {
      (await connect(port)).close();
      break;
    } catch (error) {
      if (attempt > 200) throw error;
      await sleep(25);
    }
  }
  return {
    port,
    signal: (name) => void child.kill(name),
    async stop() {
      process.off("exit", end);
      end();
      await exited;
    },
  };
}

/** @param {number} count */
export function startServers(count) {
  return Promise.all(Array.from({ length: count }, () => startServer()));
}

/**
 * Opens a connection that pipelines: all commands of a turn are sent in one write. It parses the
 * replies that the benchmarks need: texts, numbers, errors and nil.
 *
 * @param {number} port
 * @returns {Promise<{ send(...command: string[]): Promise<unknown>, close(): void }>}
 */
export function connect(port) {
  return new Promise((resolve, reject) => {
    const socket = dial({ port, host: "127.0.0.1", noDelay: true });
    /** @type {{ resolve(value: unknown): void, reject(error: Error): void }[]} */
    const waiting = [];
    let unread = "";
    let unsent = "";
    const take = () => {
      const lineEnd = unread.indexOf("\r\n");
      if (lineEnd < 0) return undefined;
      const kind = unread[0];
      const line = unread.slice(1, lineEnd);
      let end = lineEnd + 2;
      /** @type {unknown} */
      let value = kind === ":" ? Number(line) : line;
      if (kind === "$" && line === "-1") value = null;
      else if (kind === "$") {
        // All texts are plain ASCII, so characters are bytes.
        end += Number(line) + 2;
        if (unread.length < end) return undefined;
        value = unread.slice(lineEnd + 2, end - 2);
      }
      unread = unread.slice(end);
      return { kind, value };
    };
    socket.setEncoding("latin1");
    socket.once("error", reject);
    socket.on("data", (chunk) => {
      unread += chunk;
      for (let reply = take(); reply !== undefined; reply = take()) {
        const waiter = waiting.shift();
        if (reply.kind === "-") waiter?.reject(new Error(String(reply.value)));
        else waiter?.resolve(reply.value);
      }
    });
    socket.once("connect", () =>
      resolve({
        send: (...command) =>
          new Promise((done, failed) => {
            if (unsent === "") {
              queueMicrotask(() => {
                socket.write(unsent);
                unsent = "";
              });
            }
            const parts = command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
            unsent += `*${command.length}\r\n${parts.join("")}`;
            waiting.push({ resolve: done, reject: failed });
          }),
        close: () => socket.destroy(),
      }),
    );
  });
}
