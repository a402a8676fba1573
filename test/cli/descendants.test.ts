import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { startRedis, type RedisServer } from "../../tools/redis/redis-server.mjs";
import { builtCli, isRunning, linesOf, until } from "./cli-process.ts";

const cli = builtCli();
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
watchLeaks();

const started = new Set<number>();
afterEach(() => {
  for (const pid of started) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended, as it should.
    }
  }
  started.clear();
});

/** Ways to start a process outside of the command's process group. */
const escapes = {
  "under timeout": "timeout 600 WORK; true",
  "in the background of set -m": "set -m; WORK & wait",
  "under setsid": "setsid WORK & wait",
  "under setsid, in the background of another": 'setsid sh -c "setsid WORK & wait" & wait',
  "as a daemon whose parent has ended": "(setsid WORK &); while :; do sleep 0.02; done",
} as const;

/** Returns a program that writes its pid to `file`, and keeps running. */
function workIn(folder: string, file: string, first = ""): string {
  const path = join(folder, "work.sh");
  const script = `#!/bin/sh\n${first}\necho $$ >> ${file}\nwhile :; do sleep 0.02; done\n`;
  writeFileSync(path, script, { mode: 0o755 });
  return path;
}

const kinds = Object.entries(escapes);

describe("without a terminal, a process outside of the command's group", () => {
  test.each(kinds)("%s ends with the command when the lease is lost", async (_kind, start) => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const store = ["--store", `embedded:${folder}`];
    const script = start.replace("WORK", workIn(folder, file));
    const { ended } = cli.start(["exec", "r", ...store, "--ttl", "1s", "--", "sh", "-c", script]);
    const [pid] = (await linesOf(file, 1)).map(Number);
    started.add(pid ?? 0);
    await cli.run(["break", "r", "--yes", ...store]);
    expect((await ended).code).toBe(76);
    expect(isRunning(pid ?? 0)).toBe(false);
  });

  test.each(kinds)("%s ends with the command when exec is killed", async (kind, start) => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const script = start.replace("WORK", workIn(folder, file));
    const store = ["--store", server.url];
    const { pid: exec, ended } = cli.start(["exec", kind, ...store, "--", "sh", "-c", script]);
    const [pid] = (await linesOf(file, 1)).map(Number);
    started.add(pid ?? 0);
    process.kill(exec, "SIGKILL");
    await until("it has ended", () => !isRunning(pid ?? 0));
    await ended;
  });

  test("that ignores SIGTERM, and was started after it, is killed in time", async () => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const store = ["--store", `embedded:${folder}`];
    const stubborn = workIn(folder, file, 'trap "" TERM');
    const script = `trap 'setsid ${stubborn} & exit 0' TERM
      echo ready >> ${file}; while :; do sleep 0.02; done`;
    const args = ["exec", "r", ...store, "--ttl", "1s", "--grace", "800ms", "--"];
    const { ended } = cli.start([...args, "sh", "-c", script]);
    await linesOf(file, 1);
    await cli.run(["break", "r", "--yes", ...store]);
    expect((await ended).code).toBe(76);
    const [, pid] = readFileSync(file, "utf8").trim().split("\n").map(Number);
    started.add(pid ?? 0);
    expect(pid).toBeGreaterThan(0);
    expect(isRunning(pid ?? 0)).toBe(false);
  });
});

test("a process that is not of the command goes on when the lease is lost", async () => {
  const folder = cli.folder();
  const file = join(folder, "pids");
  const store = ["--store", `embedded:${folder}`];
  const exec = [process.execPath, cli.program, "exec", "r", ...store, "--ttl", "1s", "--"];
  const inner = [...exec, "sh", "-c", `echo $$ >> ${file}; sleep 1000`];
  const line = inner.map((word) => `'${word}'`).join(" ");
  // In one process group and session with exec, as in a script of cron.
  const script = `sleep 1000 & echo $! >> ${file}; ${line}; echo code:$?; kill $! && echo alive`;
  const shell = cli.start([], { through: () => ["sh", "-c", script] });
  const pids = (await linesOf(file, 2)).map(Number);
  for (const pid of pids) started.add(pid);
  await cli.run(["break", "r", "--yes", ...store]);
  expect((await shell.ended).stdout).toBe("code:76\nalive\n");
  expect(isRunning(pids[1] ?? 0)).toBe(false);
});
