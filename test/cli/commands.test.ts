import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exitCodeRows } from "../../src/cli/exit-codes.ts";
import { createLocks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { startRedis, type RedisServer } from "../../tools/redis/redis-server.mjs";
import { projectRoot } from "../support/source-files.ts";
import { builtCli, until } from "./cli-process.ts";

const cli = builtCli();
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
watchLeaks();

describe("commands that look at locks", () => {
  test("ls and inspect show what is held, as text and as JSON", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    const lease = await locks.acquire("jobs:1", { ttl: "30s", label: "a\u001B[2Jb" });
    const store = ["--store", `embedded:${folder}`];
    const listed = await cli.run(["ls", ...store]);
    // Control characters in a label must not reach the terminal.
    expect(listed.stdout).toMatch(/^RESOURCE +HOLDER +LEFT +FENCE +WAITERS\njobs:1 +a\uFFFD\[2Jb /);
    const { stdout } = await cli.run(["ls", "--json", ...store]);
    const held = { resource: "jobs:1", state: "held", fence: String(lease.fence) };
    expect(JSON.parse(stdout)).toMatchObject({ locks: [held] });
    const seen = await cli.run(["inspect", "jobs:1", "--json", ...store]);
    expect(JSON.parse(seen.stdout)).toMatchObject({ ...held, nodes: [{ node: "embedded" }] });
    expect((await cli.run(["inspect", "jobs:1", ...store])).stdout).toContain("is held by");
    expect((await cli.run(["inspect", "other", ...store])).stdout).toMatch(/^other is free\n/);
    await lease.release();
    expect((await cli.run(["ls", ...store])).stdout).toBe("nothing is held\n");
    await locks.close();
  });

  test("ls and inspect into a pipe cut nothing, whatever the width of the terminal", async () => {
    const folder = cli.folder();
    const locks = createLocks(embedded(folder));
    const name = "resource/".repeat(40);
    await locks.acquire(name, { ttl: "30s", label: "label-".repeat(15) });
    const env = { COLUMNS: "60" };
    const store = ["--store", `embedded:${folder}`];
    for (const args of [["ls"], ["watch", "--once"], ["inspect", name]]) {
      const { stdout } = await cli.run([...args, ...store], { env });
      expect(stdout).toContain(name);
      expect(stdout).toContain("label-".repeat(15));
      expect(stdout).not.toContain("…");
    }
    await locks.close();
  });

  test("watch prints changes if there is no terminal, and the table with --once", async () => {
    const folder = cli.folder();
    const store = ["--store", `embedded:${folder}`];
    const locks = createLocks(embedded(folder));
    const lease = await locks.acquire("r", { ttl: "30s", label: "me" });
    const once = await cli.run(["watch", "--once", ...store]);
    expect(once.stdout).toMatch(/1 lock .*\n\nRESOURCE +HOLDER +LEFT +FENCE .*\nr +me +\d/);
    const plain = cli.start(["watch", "--interval", "50ms", ...store]);
    await until("it shows the lock", () => plain.stdout().includes("r  held by me  fence 1"));
    await lease.release();
    await until("it shows its end", () => plain.stdout().includes("r  freed by me"));
    plain.child.kill("SIGTERM");
    expect((await plain.ended).code).toBe(0);
    expect(plain.stdout()).not.toContain("\u001B");
    await locks.close();
  });

  test("wait ends with 0 when the lock is free, with 75 when its timeout is over", async () => {
    const folder = cli.folder();
    const store = ["--store", `embedded:${folder}`];
    const locks = createLocks(embedded(folder));
    const lease = await locks.acquire("r", { ttl: "30s", label: "me" });
    const late = await cli.run(["wait", "r", "--timeout", "100ms", ...store]);
    expect(late).toMatchObject({ code: 75, stderr: 'holdfast: "r" is still held by me\n' });
    const waiting = cli.start(["wait", "r", "--debug", ...store]);
    await until("it is waiting", () => waiting.stderr().includes("store:"));
    await lease.release();
    expect((await waiting.ended).code).toBe(0);
    await locks.close();
  });

  test("doctor ends with an exit code that depends on the gravest finding", async () => {
    const well = await cli.run(["doctor", "--store", `embedded:${cli.folder()}`, "--json"]);
    const { findings } = JSON.parse(well.stdout) as { findings: { level: string }[] };
    const grave = findings.filter(({ level }) => level !== "info");
    expect(well.code).toBe(grave.length === 0 ? 0 : 1);
    await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    await server.command("CONFIG", "SET", "maxmemory", "100mb");
    const ill = await cli.run(["doctor", "--store", server.url]);
    await server.command("CONFIG", "SET", "maxmemory", "0");
    await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
    expect(ill.stdout).toMatch(/^(error|warning) .*\[eviction\]$/m);
    expect(ill.code).toBe(/^error/m.test(ill.stdout) ? 2 : 1);
  });
});

describe("the store", () => {
  test("is taken from the flag, else the environment, else the config file, else the user's own folder", async () => {
    const folder = cli.folder();
    const inner = join(folder, "a", "b");
    mkdirSync(inner, { recursive: true });
    writeFileSync(join(folder, "holdfast.json"), '{ "store": "embedded:./from-config" }');
    const storeOf = async (args: readonly string[], env: Record<string, string> = {}) => {
      const { stdout } = await cli.run(["ls", "--json", ...args], { cwd: inner, env });
      return (JSON.parse(stdout) as { store: string }).store;
    };
    const env = { HOLDFAST_STORE: `embedded:${folder}/from-environment` };
    // Relative to the file that names it, not to the working directory.
    expect(await storeOf([])).toBe(`embedded:${folder}/from-config`);
    expect(await storeOf([], env)).toBe(`embedded:${folder}/from-environment`);
    expect(await storeOf(["--store", "embedded:./flag"], env)).toBe(`embedded:${inner}/flag`);
    const { stdout } = await cli.run(["ls", "--json"], { cwd: "/" });
    expect(JSON.parse(stdout)).toMatchObject({
      store: expect.stringMatching(/^embedded:.*\/state-[^/]*\/holdfast\/locks$/),
    });
  });
});

describe("bench and simulate", () => {
  test("bench measures, and leaves no lock and no file behind", async () => {
    const args = ["bench", "--duration", "200ms", "--in-flight", "8", "--store", server.url];
    const { stdout, stderr, code } = await cli.run([...args, "--json"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { parts } = JSON.parse(stdout) as { parts: { perSecond: number; cycles: number }[] };
    expect(parts.map(({ cycles }) => cycles > 0)).toEqual([true, true]);
    expect((await cli.run(args)).stdout).toMatch(
      /8 in flight\n.* – [^]*█[^]*IN FLIGHT +PER SECOND/,
    );
    expect(await server.command("KEYS", "*bench*")).toEqual([]);
  });

  test("simulate replays a seed, and draws its timeline", async () => {
    const page = join(cli.folder(), "world.html");
    const first = await cli.run(["simulate", "--seed", "7", "--html", page, "--json"]);
    const again = await cli.run(["simulate", "--seed", "7", "--json"]);
    expect(first.code).toBe(0);
    const { hash } = JSON.parse(first.stdout) as { hash: string };
    expect(JSON.parse(again.stdout)).toMatchObject({ hash, violations: [] });
    expect(readFileSync(page, "utf8")).toContain("<svg");
    const text = await cli.run(["simulate", "--seed", "7"]);
    expect(text.stdout).toContain(`replay: holdfast simulate --seed 7    trace ${hash}`);
    const many = await cli.run(["simulate", "--seeds", "2"]);
    expect(many.stdout).toMatch(/^2 worlds, \d+ events/);
  });
});

describe("fence check", () => {
  test("in Redis works with the fence from exec's environment", async () => {
    const check = ["fence", "check", "--redis", server.url, "--key", "guard:report"];
    expect((await cli.run([...check, "5"])).code).toBe(0);
    expect((await cli.run(check, { env: { HOLDFAST_FENCE: "6" } })).code).toBe(0);
    const stale = await cli.run([...check, "5", "--json"]);
    expect(stale.code).toBe(79);
    expect(JSON.parse(stale.stdout)).toEqual({ accepted: false, fence: "5", seen: "6" });
    await server.command("SET", "guard:other", "text");
    const other = ["fence", "check", "--redis", server.url, "--key", "guard:other", "5"];
    expect(await cli.run(other)).toMatchObject({ code: 69, stdout: "" });
  });
});

describe("help", () => {
  test("exists for every command, with examples", async () => {
    const { stdout } = await cli.run(["--help"]);
    const names = [...stdout.matchAll(/^ {2}([a-z]+)[ [<].*$/gm)].map(([, name]) => name ?? "");
    const commands = names.filter((name) => !["embedded", "redis", "holdfast"].includes(name));
    expect(commands).toContain("exec");
    for (const name of commands.filter((one) => one !== "help")) {
      const path = name === "fence" ? [name, "check"] : [name];
      const help = await cli.run([...path, "--help"]);
      expect(help.code).toBe(0);
      expect(help.stdout).toMatch(/^Usage: holdfast [^]*^Examples:\n {2}holdfast /m);
      expect(help.stdout).toContain("--json");
    }
  });

  test("lists the exit codes, and so does the documentation", async () => {
    const { stdout } = await cli.run(["help", "exit-codes"]);
    const page = readFileSync(join(projectRoot, "docs", "reference", "cli.md"), "utf8");
    const rows = [...page.matchAll(/^\| (\d+(?:\+n)?) +\| (.*?) +\|$/gm)];
    expect(rows.map(([, code, means]) => [code, means])).toEqual(exitCodeRows());
    for (const [code, means] of exitCodeRows()) expect(stdout).toContain(`${code}  ${means}`);
  });

  test("every command and every option is documented", async () => {
    const page = readFileSync(join(projectRoot, "docs", "reference", "cli.md"), "utf8");
    const script = (await cli.run(["completion", "fish"])).stdout;
    const options = new Set([...script.matchAll(/ -l ([a-z-]+) /g)].map(([, name]) => name));
    expect(options.size).toBeGreaterThan(20);
    expect([...options].filter((name) => !page.includes(`--${name}`))).toEqual([]);
    const names = new Set([...script.matchAll(/ -f -a ([a-z]+) /g)].map(([, name]) => name));
    const isThere = (name: string): boolean => {
      return page.includes(`holdfast ${name}`) || page.includes(`holdfast fence ${name}`);
    };
    expect([...names].filter((name) => !isThere(name ?? ""))).toEqual([]);
  });
});

describe("completion", () => {
  test.each(["bash", "zsh", "fish"])(
    "of %s is a script that this shell can parse",
    async (shell) => {
      const { code, stdout } = await cli.run(["completion", shell]);
      expect(code).toBe(0);
      const file = join(cli.folder(), "completion");
      writeFileSync(file, stdout);
      const checked = spawnSync(shell, ["-n", file], { encoding: "utf8" });
      if (checked.error !== undefined) return console.warn(`${shell} is not installed`);
      expect(checked).toMatchObject({ status: 0, stderr: "" });
    },
  );

  test("of bash completes commands and options", async () => {
    const { stdout } = await cli.run(["completion", "bash"]);
    const complete = (line: string): string[] => {
      const words = line
        .split(" ")
        .map((word) => `"${word}"`)
        .join(" ");
      const ask = `COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _holdfast;
        printf '%s\\n' "\${COMPREPLY[@]}"`;
      const input = `${stdout}\n${ask}\n`;
      return spawnSync("bash", ["--norc"], { input, encoding: "utf8" }).stdout.trim().split("\n");
    };
    expect(complete("holdfast ex")).toEqual(["exec"]);
    expect(complete("holdfast exec some --gr")).toEqual(["--grace"]);
    expect(complete("holdfast fence ch")).toEqual(["check"]);
    expect(complete("holdfast fence check --f")).toEqual(["--file"]);
    // Without the package bash-completion, the name of a command is completed.
    expect(complete("holdfast exec some -- bas")).toContain("bash");
  });

  test("of bash completes the names of held resources, and runs nothing in them", async () => {
    const folder = cli.folder();
    const ran = join(folder, "ran");
    const locks = createLocks(embedded(join(folder, "locks")));
    await locks.acquire("nightly-report");
    await locks.acquire(`nightly $(touch ${ran})`);
    await locks.acquire("other");
    const names = ["ls", "--names", "--store", `embedded:${join(folder, "locks")}`];
    expect((await cli.run(names)).stdout).toBe(`nightly $(touch ${ran})\nnightly-report\nother\n`);
    const { stdout } = await cli.run(["completion", "bash"]);
    const input = `holdfast() { "${process.execPath}" "${cli.program}" "$@"; }
      ${stdout}
      COMP_WORDS=(holdfast exec nightly); COMP_CWORD=2; _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const env = { ...process.env, HOLDFAST_STORE: `embedded:${join(folder, "locks")}` };
    const completed = spawnSync("bash", ["--norc"], { input, encoding: "utf8", env });
    expect(completed.stdout.trim().split("\n")).toEqual([
      `nightly\\ \\$\\(touch\\ ${ran}\\)`,
      "nightly-report",
    ]);
    expect(existsSync(ran)).toBe(false);
    await locks.close();
  });
});

test("--version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
  expect((await cli.run(["--version"])).stdout).toBe(`${version}\n`);
  expect(existsSync(cli.program)).toBe(true);
});
