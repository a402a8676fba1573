import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { required } from "../support/requirements.ts";
import { builtCli, isRunning, linesOf, until, worker } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

describe("the command of exec", () => {
  test("runs under the lock, with resources, fence and expiry in its environment", async () => {
    const folder = cli.folder();
    const show = 'echo "$HOLDFAST_RESOURCE|$HOLDFAST_FENCE|$HOLDFAST_EXPIRES_AT"';
    const before = Date.now();
    const { code, stdout, stderr } = await cli.run(
      ["exec", "b", "a", "--store", `embedded:${folder}`, "--ttl", "20s", "--", "sh", "-c", show],
      { cwd: folder },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [, resources, fence, expiresAt] = /^([^|]*)\|(\d+)\|(\d+)\n$/.exec(stdout) ?? [];
    expect(resources).toBe("a\nb");
    // In microseconds since 1970, as on Redis.
    expect(Number(fence)).toBeGreaterThanOrEqual(before * 1_000);
    expect(Number(expiresAt)).toBeGreaterThan(before + 10_000);
    expect(Number(expiresAt)).toBeLessThan(Date.now() + 20_000);
  });

  test.each([0, 1, 42, 75, 255])(
    "ends with %d, and exec with the same exit code",
    async (wanted) => {
      const { code } = await cli.run(["exec", "r", "--", "sh", "-c", `exit ${wanted}`]);
      expect(code).toBe(wanted);
    },
  );

  test("is killed by a signal, and exec ends with 128 plus its number", async () => {
    const { code, signal } = await cli.run(["exec", "r", "--", "sh", "-c", "kill -KILL $$"]);
    expect({ code, signal }).toEqual({ code: 137, signal: null });
  });

  test("that is missing or not executable is reported as shells do it", async () => {
    const missing = await cli.run(["exec", "r", "--", "no-such-command"]);
    expect(missing.code).toBe(127);
    expect(missing.stderr).toBe("holdfast: no-such-command: command not found\n");
    const plain = join(cli.folder(), "plain.sh");
    writeFileSync(plain, "exit 0\n");
    chmodSync(plain, 0o644);
    const { code, stderr } = await cli.run(["exec", "r", "--", plain]);
    expect(code).toBe(126);
    expect(stderr).toMatch(/^holdfast: .*permission denied\n$/);
    // Neither run leaves the lock behind.
    expect((await cli.run(["exec", "r", "--wait", "0", "--", "true"])).code).toBe(0);
  });

  test.each([{}, { "odd.name": "x" }])(
    "is a script of a program that does not exist, and exec ends with 126 (%j)",
    async (env) => {
      const script = join(cli.folder(), "script");
      writeFileSync(script, "#!/no/such/program -x\n", { mode: 0o755 });
      const { code, stderr } = await cli.run(["exec", "r", "--", script], { env });
      expect(code).toBe(126);
      expect(stderr).toBe(
        `holdfast: ${script}: cannot be executed: there is no /no/such/program\n`,
      );
    },
  );

  test("is not found in a folder of PATH that cannot be searched", async (context) => {
    required(context, "the rights of root", process.getuid?.() === 0 ? 0 : undefined);
    const folder = cli.folder();
    writeFileSync(join(folder, "hidden"), "#!/bin/sh\n", { mode: 0o755 });
    chmodSync(folder, 0o700);
    const asOther = (command: readonly string[]): readonly string[] => {
      return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", ...command];
    };
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    const ended = await cli.run(["exec", "r", "--", "hidden"], { env, through: asOther });
    expect(ended).toMatchObject({ code: 127, stderr: "holdfast: hidden: command not found\n" });
  });

  test("gets a grace that fits, with a note, if --grace is longer than that", async () => {
    const args = ["exec", "r", "--ttl", "3s", "--grace", "2s", "--debug", "--", "true"];
    const { code, stderr } = await cli.run(args);
    expect(code).toBe(0);
    expect(stderr).toContain("only 1.0s of --grace fit into the lease: use a longer --ttl");
  });

  test("is found behind folders of PATH that are no folders", async () => {
    const file = join(cli.folder(), "file");
    writeFileSync(file, "");
    const env = { PATH: `${file}/bin:${process.env["PATH"]}` };
    const found = await cli.run(["exec", "r", "--", "echo", "ran"], { env });
    expect(found).toMatchObject({ code: 0, stdout: "ran\n" });
    const missing = await cli.run(["exec", "r", "--", "no-such-command"], { env });
    expect(missing.code).toBe(127);
  });

  test("gets exec's input, and its output is exec's output", async () => {
    const { child, ended } = cli.start(["exec", "r", "--", "cat"]);
    child.stdin?.end("one\ntwo\n");
    expect(await ended).toMatchObject({ code: 0, stdout: "one\ntwo\n", stderr: "" });
  });

  test("may run longer than the TTL, because the lease is renewed", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}`;
    const done = join(folder, "done");
    const args = ["exec", "r", "--store", store, "--ttl", "1500ms", "--json", "--"];
    const script = `while [ ! -e ${done} ]; do sleep 0.05; done`;
    const { child, ended, pid } = cli.start([...args, "sh", "-c", script]);
    child.stdin?.end();
    const locks = createLocks(embedded(folder));
    await until("it is held", async () => (await locks.inspect("r")).state === "held");
    const startedMs = performance.now();
    const { fence } = await locks.inspect("r");
    while (performance.now() - startedMs < 3_000) {
      const seen = await locks.inspect("r");
      expect(seen).toMatchObject({ state: "held", fence });
      expect(seen.label).toMatch(new RegExp(`:${pid}$`));
    }
    writeFileSync(done, "");
    const { code, stderr } = await ended;
    expect(code).toBe(0);
    expect(JSON.parse(stderr)).toMatchObject({
      resources: ["r"],
      fence: String(fence),
      exit: 0,
    });
    expect((await locks.inspect("r")).state).toBe("free");
    await locks.close();
  });
});

describe("signals", () => {
  test.each(["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)(
    "%s is passed on to the command, which decides what to do",
    async (signal) => {
      const file = join(cli.folder(), "said");
      const name = signal.slice(3);
      const script = `trap 'echo ${name} >> ${file}; exit 7' ${name}; echo ready >> ${file}; 
        while :; do sleep 0.02; done`;
      const { ended, pid } = cli.start(["exec", "r", "--", "sh", "-c", script]);
      await linesOf(file, 1);
      process.kill(pid, signal);
      expect((await ended).code).toBe(7);
      expect(readFileSync(file, "utf8")).toBe(`ready\n${name}\n`);
    },
  );

  test("one that ends the command by default makes exec end with 128 plus its number", async () => {
    const file = join(cli.folder(), "pids");
    const { ended, pid } = cli.start(["exec", "r", "--", "sh", "-c", `echo >> ${file}; sleep 99`]);
    await linesOf(file, 1);
    process.kill(pid, "SIGTERM");
    expect((await ended).code).toBe(128 + 15);
  });

  test("while exec waits for the lock, a signal ends it, and the command never runs", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}`;
    const locks = createLocks(embedded(folder));
    await locks.acquire("r", { ttl: "30s" });
    const ran = join(folder, "ran");
    const args = ["exec", "r", "--store", store, "--wait", "forever", "--debug", "--"];
    const waiting = cli.start([...args, "touch", ran]);
    await until("it is waiting", () => waiting.stderr().includes("store:"));
    process.kill(waiting.pid, "SIGINT");
    expect((await waiting.ended).code).toBe(128 + 2);
    expect(existsSync(ran)).toBe(false);
    await locks.close();
  });

  test("a stopped and continued exec stops and continues its command", async () => {
    const folder = cli.folder();
    const file = join(folder, "ticks");
    const script = `while :; do echo x >> ${file}; sleep 0.02; done`;
    const { ended, pid } = cli.start(["exec", "r", "--ttl", "20s", "--", "sh", "-c", script]);
    await linesOf(file, 3);
    process.kill(pid, "SIGTSTP");
    const size = (): number => readFileSync(file).length;
    await until("it stands still", async () => {
      const before = size();
      await new Promise((resolve) => setTimeout(resolve, 200));
      return size() === before;
    });
    const before = size();
    process.kill(pid, "SIGCONT");
    await until("it goes on", () => size() > before);
    process.kill(pid, "SIGTERM");
    expect((await ended).code).toBe(143);
  });
});

describe("a lock with another holder", () => {
  test("is waited for until the wait is over, then exec ends with 75", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    await locks.acquire("r", { ttl: "30s", label: "the other" });
    const store = `embedded:${folder}`;
    for (const wait of ["0", "300ms"]) {
      const args = ["exec", "r", "--store", store, "--wait", wait, "--", "echo", "ran"];
      const { code, stdout, stderr } = await cli.run(args);
      expect({ code, stdout }).toEqual({ code: 75, stdout: "" });
      expect(stderr).toMatch(/^holdfast: "r" was held by "the other" .*\n$/);
    }
    await locks.close();
  });

  test("ends a quiet exec in silence, with the exit code that was asked for", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    const lease = await locks.acquire("r", { ttl: "30s" });
    const args = ["exec", "r", "--store", `embedded:${folder}`, "--wait", "0"];
    const flags = ["--quiet", "--conflict-exit-code", "0"];
    const command = ["--", "echo", "ran"];
    const skipped = await cli.run([...args, ...flags, ...command]);
    expect(skipped).toMatchObject({ code: 0, stdout: "", stderr: "" });
    const short = await cli.run([...args, "-q", "-E", "9", ...command]);
    expect(short).toMatchObject({ code: 9, stdout: "", stderr: "" });
    const json = await cli.run([...args, "-E", "9", "--json", ...command]);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { exit: "held", code: 9 } });
    await lease.release();
    const done = await cli.run([...args, ...flags, ...command]);
    expect(done).toMatchObject({ code: 0, stdout: "ran\n", stderr: "" });
    await locks.close();
  });

  test("is free at once if it was held by an exec that died", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}`;
    const file = join(folder, "pids");
    const dying = cli.start(["exec", "r", "--store", store, "--ttl", "30s", "--", ...worker(file)]);
    await linesOf(file, 2);
    process.kill(dying.pid, "SIGKILL");
    await dying.ended;
    expect((await cli.run(["exec", "r", "--store", store, "--", "true"])).code).toBe(0);
  });
});

test("the command of an exec that died has ended before the next holder's command starts", async () => {
  const folder = cli.folder();
  const [pids, seen] = [join(folder, "pids"), join(folder, "seen")];
  const exec = ["exec", "r", "--store", `embedded:${folder}`, "--ttl", "30s"];
  const dying = cli.start([...exec, "--label", "first", "--", ...worker(pids, "true")]);
  await linesOf(pids, 2);
  // The watchdog, which ends the command, is slow.
  const watchdog = await watchdogOf(dying.pid);
  process.kill(watchdog, "SIGSTOP");
  process.kill(dying.pid, "SIGKILL");
  await until("exec has died", () => !isRunning(dying.pid));
  // A zombie runs no code any more.
  const look = "grep -q ') [^ZX]' /proc/$pid/stat 2>/dev/null && echo $pid";
  const next = `for pid in $(cat ${pids}); do ${look}; done > ${seen}; true`;
  const second = cli.start([...exec, "--label", "second", "--", "sh", "-c", next]);
  const locks = createLocks(embedded(folder));
  await until("the next one holds the lock", async () => {
    return (await locks.inspect("r")).label === "second";
  });
  await locks.close();
  expect(existsSync(seen)).toBe(false);
  process.kill(watchdog, "SIGCONT");
  await dying.ended;
  expect(await second.ended).toMatchObject({ code: 0, stderr: "" });
  expect(readFileSync(seen, "utf8")).toBe("");
});

describe("a lease that is lost", () => {
  test("by break makes exec stop the command and end with 76", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}`;
    const file = join(folder, "pids");
    const command = worker(file, `echo term >> ${file}; exit 0`);
    const args = ["exec", "r", "--store", store, "--ttl", "2s", "--grace", "2s", "--", ...command];
    const { ended } = cli.start(args);
    const [, child] = await linesOf(file, 2);
    const held = await cli.run(["inspect", "r", "--store", store, "--json"]);
    const broken = await cli.run(["break", "r", "--yes", "--store", store, "--json"]);
    expect(broken.code).toBe(0);
    const [old, now] = [held, broken].map(({ stdout }) => JSON.parse(stdout) as { fence: string });
    expect(now).toMatchObject({ broken: true });
    expect(BigInt(now?.fence ?? 0)).toBeGreaterThan(BigInt(old?.fence ?? 0));
    const { code, stderr } = await ended;
    expect(code).toBe(76);
    expect(stderr).toMatch(/^holdfast: the lease on "r" was lost: .*; stopping the command\n$/);
    expect((await linesOf(file, 3))[2]).toBe("term");
    await until("all of it has ended", () => !isRunning(Number(child)));
  });

  test("kills the command and all its children if it does not end within the grace", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}`;
    const file = join(folder, "pids");
    const script = `trap "" TERM; sh -c 'trap "" TERM; echo $$ >> ${file}; sleep 1000' & 
      echo $$ >> ${file}; wait`;
    const args = ["exec", "r", "--store", store, "--ttl", "1s", "--grace", "200ms", "--"];
    const { ended } = cli.start([...args, "sh", "-c", script]);
    const pids = await linesOf(file, 2);
    await cli.run(["break", "r", "--yes", "--store", store]);
    expect((await ended).code).toBe(76);
    for (const pid of pids) await until(`${pid} has ended`, () => !isRunning(Number(pid)));
  });

  test("makes exec end with 76 even if the command ended with 0", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}`;
    // It breaks its own lock, and ends before the next renewal could detect that.
    const inner = `node ${cli.program} break r --yes --store ${store}`;
    const args = ["exec", "r", "--store", store, "--ttl", "30s", "--", "sh", "-c", inner];
    const { code, stderr } = await cli.run(args);
    expect(code).toBe(76);
    expect(stderr).toContain("the lease was lost while the command ran (taken)");
  });

  test("at the end of --max-hold stops the command", async () => {
    const args = ["exec", "r", "--ttl", "1s", "--max-hold", "1s", "--", "sleep", "1000"];
    const { code, stderr } = await cli.run(args);
    expect(code).toBe(76);
    expect(stderr).toContain("stopping the command");
  });
});

describe("a killed or stopped exec", () => {
  test("takes its command and all its children down with it", async () => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const args = ["exec", "r", "--store", `embedded:${folder}`, "--ttl", "30s", "--"];
    const { pid, ended } = cli.start([...args, ...worker(file, "true")]);
    const pids = await linesOf(file, 2);
    process.kill(pid, "SIGKILL");
    for (const one of pids) await until(`${one} has ended`, () => !isRunning(Number(one)));
    await ended;
  });

  test("has its command ended if it is stopped for longer than the lease", async () => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const args = ["exec", "r", "--store", `embedded:${folder}`, "--ttl", "1s", "--"];
    const { pid, ended } = cli.start([...args, ...worker(file, `echo term >> ${file}; exit 0`)]);
    const pids = await linesOf(file, 2);
    process.kill(pid, "SIGSTOP");
    for (const one of pids) await until(`${one} has ended`, () => !isRunning(Number(one)));
    expect((await linesOf(file, 3))[2]).toBe("term");
    process.kill(pid, "SIGCONT");
    const { code, stderr } = await ended;
    expect(code).toBe(76);
    expect(stderr).toMatch(/^holdfast: the lease [^\n]*\n$/);
  });

  test("starts a new watchdog if the watchdog was killed", async () => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const args = ["exec", "r", "--store", `embedded:${folder}`, "--ttl", "30s", "--"];
    const { pid, ended } = cli.start([...args, ...worker(file, "true")]);
    const pids = await linesOf(file, 2);
    const first = await watchdogOf(pid);
    process.kill(first, "SIGKILL");
    await until("another one is there", async () => {
      const second = await watchdogOf(pid);
      return second !== -1 && second !== first;
    });
    process.kill(pid, "SIGKILL");
    for (const one of pids) await until(`${one} has ended`, () => !isRunning(Number(one)));
    await ended;
  });
});

describe("exec within exec", () => {
  const nested = (outer: string, inner: string, store: string): readonly string[] => {
    const program = [process.execPath, cli.program];
    const innerArgs = ["exec", inner, "--store", store, "--", "echo", "inside"];
    return ["exec", outer, "--store", store, "--", ...program, ...innerArgs];
  };

  test("works for another lock", async () => {
    const store = `embedded:${cli.folder()}`;
    const { code, stdout } = await cli.run(nested("outer", "inner", store));
    expect({ code, stdout }).toEqual({ code: 0, stdout: "inside\n" });
  });

  test("fails at once for the same lock instead of waiting for itself", async () => {
    const store = `embedded:${cli.folder()}`;
    const { code, stdout, stderr } = await cli.run(nested("same", "same", store));
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).toMatch(/^holdfast: "same" is held by the exec around this one \(pid \d+\)/);
  });

  test("works for a lock of the same name in another store", async () => {
    const [one, other] = [cli.folder(), cli.folder()];
    const program = [process.execPath, cli.program];
    const inner = ["exec", "same", "--store", `embedded:${other}`, "--", "echo", "inside"];
    const args = ["exec", "same", "--store", `embedded:${one}`, "--", ...program, ...inner];
    expect(await cli.run(args)).toMatchObject({ code: 0, stdout: "inside\n" });
  });

  test.each(["[", "1", "[1, null]", '[{"store": 1}]', '[{"store": "x", "resources": 5}]'])(
    "ignores a HOLDFAST_HELD that another program wrote: %s",
    async (garbage) => {
      const env = { HOLDFAST_HELD: garbage };
      const ended = await cli.run(["exec", "same", "--", "echo", "inside"], { env });
      expect(ended).toMatchObject({ code: 0, stdout: "inside\n", stderr: "" });
    },
  );

  test("is an ordinary exec if the outer one has ended", async () => {
    const store = `embedded:${cli.folder()}`;
    const show = ["exec", "same", "--store", store, "--", "printenv", "HOLDFAST_HELD"];
    const { stdout } = await cli.run(show);
    const env = { HOLDFAST_HELD: stdout.trim() };
    const args = ["exec", "same", "--store", store, "--", "echo", "inside"];
    expect(await cli.run(args, { env })).toMatchObject({ code: 0, stdout: "inside\n" });
  });
});

/** Returns the pid of the child of exec that runs the watchdog, or -1. Found through /proc. */
async function watchdogOf(parent: number): Promise<number> {
  const { readdirSync } = await import("node:fs");
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const owner = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      if (owner === parent && command.includes("watchdog.js")) return Number(pid);
    } catch {
      // It ended while we looked.
    }
  }
  return -1;
}
