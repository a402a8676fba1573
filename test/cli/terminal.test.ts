import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { isAvailable } from "../support/requirements.ts";
import { builtCli, isRunning, linesOf, until, worker, type Running } from "./cli-process.ts";

/**
 * Tests in a pseudo-terminal, as people use the command line. `script` of util-linux opens one,
 * and passes its input on as if it were typed.
 */
const tool = spawnSync("script", ["--version"], { encoding: "utf8" });
const isScript = tool.status === 0 && tool.stdout.includes("util-linux");
const usable = isAvailable("`script` of util-linux (Debian: bsdutils)", isScript);

const cli = builtCli();
watchLeaks();

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
const inTerminal = (command: readonly string[]): readonly string[] => {
  const line = `stty rows 24 cols 80; exec ${command.map(quoted).join(" ")}`;
  return ["script", "--quiet", "--flush", "--return", "--command", line, "/dev/null"];
};

function start(args: readonly string[]): Running {
  return cli.start(args, { through: inTerminal, env: { TERM: "xterm" } });
}

function type(running: Running, text: string): void {
  running.child.stdin?.write(text);
}

describe.skipIf(!usable)("exec in a terminal", () => {
  test("says which store it uses, and after a second which holder it waits for", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    const lease = await locks.acquire("r", { ttl: "30s", label: "the other" });
    const store = ["--store", `embedded:${folder}`];
    const args = ["exec", "r", ...store, "--wait", "forever"];
    const running = start([...args, "--", "echo", "done"]);
    await until("it says so", () => running.stdout().includes("which is held by the other"));
    await lease.release();
    const { stdout, code } = await running.ended;
    expect({ code, lines: stdout.split("\r\n") }).toEqual({
      code: 0,
      lines: [
        `holdfast: store: embedded:${folder} (from --store)`,
        'holdfast: waiting for ever for "r", which is held by the other',
        "done",
        "",
      ],
    });
    const quiet = await start([...args, "--quiet", "--", "echo", "done"]).ended;
    expect(quiet.stdout).toBe("done\r\n");
    await locks.close();
  });

  test("gives the command the terminal, and passes its exit code on", async () => {
    const script = "test -t 0 && test -t 1 && test -t 2 && read line && echo got:$line && exit 9";
    const running = start(["exec", "r", "--", "sh", "-c", script]);
    type(running, "hello\n");
    const { code, stdout } = await running.ended;
    expect(stdout).toContain("got:hello");
    expect(code).toBe(9);
  });

  test("passes Ctrl-C to the command once, and the command decides what to do", async () => {
    const file = join(cli.folder(), "said");
    const script = `trap 'echo INT >> ${file}' INT; trap 'exit 5' USR2; echo ready >> ${file};
      while :; do sleep 0.02; done`;
    const running = start(["exec", "r", "--json", "--", "sh", "-c", script]);
    await linesOf(file, 1);
    type(running, "\u0003");
    await linesOf(file, 2);
    const pid = commandPid(running.pid, "trap");
    // If exec had passed the signal on a second time, it would have arrived before this one.
    process.kill(pid, "SIGUSR2");
    expect((await running.ended).code).toBe(5);
    expect(readFileSync(file, "utf8")).toBe("ready\nINT\n");
  });

  test("stops with its command on Ctrl-Z, and continues with it on fg", async () => {
    const folder = cli.folder();
    const [file, done] = [join(folder, "ticks"), join(folder, "done")];
    const script = `while [ ! -e ${done} ]; do echo x >> ${file}; sleep 0.05; done; echo all done`;
    const exec = [process.execPath, cli.program, "exec", "r", "--ttl", "20s", "--"];
    const line = [...exec, "sh", "-c", script].map(quoted).join(" ");
    const shell = cli.start([], {
      through: () => inTerminal(["bash", "--norc", "--noprofile", "-i"]),
      env: { TERM: "xterm", PS1: "$ " },
    });
    type(shell, `${line}\n`);
    await linesOf(file, 3);
    type(shell, "\u001A");
    await until("the shell reports that it stopped", () => shell.stdout().includes("Stopped"));
    const before = readFileSync(file).length;
    type(shell, "fg\n");
    await until("it goes on", () => readFileSync(file).length > before);
    type(shell, "\u001A");
    await until("it stopped again", () => shell.stdout().split("Stopped").length > 2);
    type(shell, `touch ${done}; fg\n`);
    await until("it ended", () => shell.stdout().includes("all done\r\n"));
    type(shell, "exit $?\n");
    expect((await shell.ended).code).toBe(0);
  });

  test("ends the command and all its children when the lease is lost, and no other process", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}`;
    const file = join(folder, "pids");
    const bystander = join(folder, "bystander");
    const exec = [
      process.execPath,
      cli.program,
      "exec",
      "r",
      "--store",
      store,
      "--ttl",
      "1s",
      "--",
    ];
    const command = [...exec, ...worker(file)].map(quoted).join(" ");
    // In the same process group, as in a script that runs in a terminal.
    const line = `sleep 1000 & echo $! >> ${bystander}; ${command}; echo code:$?; kill $!`;
    const shell = cli.start([], { through: () => inTerminal(["sh", "-c", line]) });
    const pids = await linesOf(file, 2);
    const [other] = await linesOf(bystander, 1);
    await cli.run(["break", "r", "--yes", "--store", store]);
    await until("exec has ended", () => shell.stdout().includes("code:"));
    expect(shell.stdout()).toContain("code:76");
    for (const pid of pids) expect(isRunning(Number(pid))).toBe(false);
    await shell.ended;
    expect(shell.stdout()).not.toContain("Terminated");
    expect(Number(other)).toBeGreaterThan(0);
  });

  test("takes its command and all its children down with it when it is killed", async () => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const running = start(["exec", "r", "--store", `embedded:${folder}`, "--", ...worker(file)]);
    const pids = await linesOf(file, 2);
    process.kill(commandPid(running.pid, "main.js"), "SIGKILL");
    for (const pid of pids) await until(`${pid} has ended`, () => !isRunning(Number(pid)));
    await running.ended;
  });
});

describe.skipIf(!usable)("other commands in a terminal", () => {
  test.each([
    ["y", 0, "free"],
    ["n", 1, "held"],
    ["", 1, "held"],
  ] as const)(
    "break asks for a confirmation, and the answer %j ends it with %d",
    async (answer, wanted, after) => {
      const folder = cli.folder();
      const locks = createLocks(embedded(folder));
      const lease = await locks.acquire("r", { ttl: "30s", label: "another-client" });
      const running = start(["break", "r", "--store", `embedded:${folder}`]);
      await until("it asks", () => running.stdout().includes("[y/N]"));
      expect(stripVTControlCharacters(running.stdout())).toContain("held by another-client");
      expect(running.stdout()).toContain("Its holder is not stopped");
      type(running, `${answer}\r`);
      expect((await running.ended).code).toBe(wanted);
      expect((await locks.inspect("r")).state).toBe(after);
      await lease.release();
      await locks.close();
    },
  );

  test("break does not break a holder that came during the confirmation", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    const first = await locks.acquire("r", { ttl: "30s" });
    const running = start(["break", "r", "--store", `embedded:${folder}`]);
    await until("it asks", () => running.stdout().includes("[y/N]"));
    await first.release();
    const second = await locks.acquire("r", { ttl: "30s" });
    type(running, "y\r");
    expect((await running.ended).code).toBe(80);
    expect(await second.prove()).toBe(true);
    await locks.close();
  });

  test("watch draws a table that is updated, and restores the screen at the end", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    const lease = await locks.acquire("shown:first", { ttl: "30s", label: "me" });
    const running = start(["watch", "--interval", "50ms", "--store", `embedded:${folder}`]);
    const text = (): string => stripVTControlCharacters(running.stdout());
    await until("it shows the first", () => /shown:first +me .*█/.test(text()));
    await lease.release();
    await until("it shows that nothing is held", () => text().endsWith("nothing is held"));
    type(running, "q");
    expect((await running.ended).code).toBe(0);
    expect(running.stdout()).toContain("\u001B[?1049l");
    await locks.close();
  });

  test("NO_COLOR and --no-color turn colours off", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    await locks.acquire("r", { ttl: "30s" });
    const args = ["ls", "--store", `embedded:${folder}`];
    const color = "\u001B[1m";
    expect((await start(args).ended).stdout).toContain(color);
    expect((await start([...args, "--no-color"]).ended).stdout).not.toContain("\u001B[");
    const env = { NO_COLOR: "1", TERM: "xterm" };
    const plain = await cli.start(args, { through: inTerminal, env }).ended;
    expect(plain.stdout).not.toContain("\u001B[");
    await locks.close();
  });

  test("output to a pipe has no colours, even if CI or FORCE_COLOR is set", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    await locks.acquire("r", { ttl: "30s" });
    const env = { CI: "true", FORCE_COLOR: "1" };
    const { stdout } = await cli.run(["ls", "--store", `embedded:${folder}`], { env });
    expect(stdout).toContain("RESOURCE");
    expect(stdout).not.toContain("\u001B[");
    await locks.close();
  });
});

/**
 * Returns the pid of a process below `root` with `part` in its command line, apart from `script`
 * and its shells.
 */
function commandPid(root: number, part: string): number {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" });
  const all = stdout.split("\n").map((line) => {
    const [pid = "", parent = "", ...args] = line.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), args: args.join(" ") };
  });
  const below = new Set([root]);
  let found = -1;
  for (let turn = 0; turn < 10; turn += 1) {
    for (const { pid, parent, args } of all) {
      if (!below.has(parent) || below.has(pid)) continue;
      below.add(pid);
      const isOurs =
        part === "main.js" ? args.startsWith(process.execPath) : args.startsWith("sh ");
      if (isOurs && args.includes(part) && found < 0) found = pid;
    }
  }
  if (found < 0) throw new Error(`nothing with ${part} below ${root}`);
  return found;
}
