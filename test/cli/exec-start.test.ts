import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { startRedis, type RedisServer } from "../../tools/redis/redis-server.mjs";
import { required } from "../support/requirements.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { builtCli, until } from "./cli-process.ts";

const cli = builtCli();
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
watchLeaks();

const numbers = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 } as const;

describe("a signal before the command starts", () => {
  test.each(["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"] as const)(
    "%s while exec connects ends it, and nothing is run",
    async (signal) => {
      const proxy = await startTcpProxy(server.port);
      onTestFinished(() => proxy.stop());
      proxy.requests = "hold";
      const ran = join(cli.folder(), "ran");
      const store = `redis://127.0.0.1:${proxy.port}`;
      const { pid, ended } = cli.start(["exec", "r", "--store", store, "--", "touch", ran]);
      await until("it connects", () => proxy.connectionCount > 0);
      process.kill(pid, signal);
      // The signal arrives before the server's answer.
      await sleep(100);
      proxy.requests = "pass";
      expect(await ended).toMatchObject({ code: 128 + numbers[signal], stdout: "", stderr: "" });
      expect(existsSync(ran)).toBe(false);
    },
  );

  test("at any moment of the start, exec ends by it, and leaves no lock behind", async () => {
    for (let delayMs = 0; delayMs < 400; delayMs += 25) {
      const file = join(cli.folder(), "ran");
      const script = `trap 'echo got >> ${file}; exit 143' TERM; echo ran >> ${file}; 
        while :; do sleep 0.01; done`;
      const store = ["--store", server.url];
      const { pid, ended } = cli.start(["exec", "start", ...store, "--", "sh", "-c", script]);
      await sleep(delayMs);
      process.kill(pid, "SIGTERM");
      const { code, signal } = await ended;
      // The system itself ends a process that has not come to its first line.
      expect(code ?? signal).toBe(signal === null ? 143 : "SIGTERM");
      // If the command ran, it is the command that got the signal.
      if (existsSync(file)) expect(readFileSync(file, "utf8")).toMatch(/^(ran\n)?got\n$/);
      expect(await server.command("EXISTS", "start")).toBe(0);
    }
  });

  test("ends exec as the first process of a container, where signals have no default effect", async (context) => {
    const proxy = await startTcpProxy(server.port);
    onTestFinished(() => proxy.stop());
    proxy.requests = "hold";
    const store = `redis://127.0.0.1:${proxy.port}`;
    const inside = (command: readonly string[]): readonly string[] => {
      return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", ...command];
    };
    const args = ["exec", "r", "--store", store, "--", "true"];
    const starting = cli.start(args, { through: inside });
    const { child, ended } = starting;
    const over = ended.then(() => true);
    await until("it connects", async () => {
      return proxy.connectionCount > 0 || (await Promise.race([over, sleep(1, false)]));
    });
    const isPermitted = !/unshare/.test(starting.stderr());
    required(context, "unshare and rights for namespaces", isPermitted ? child : undefined);
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
    process.kill(Number(children), "SIGTERM");
    expect((await ended).code).toBe(143);
  });
});

describe("the environment of the command", () => {
  const secret = "hidden-in-the-environment";
  const names = ["npm_config_//registry/:_authToken", "with.dots", "with-dashes", "1st"];
  const env = Object.fromEntries(names.map((name) => [name, secret]));

  test("has variables with names that a shell does not pass on", async () => {
    const show = "process.stdout.write(JSON.stringify(process.env))";
    const args = ["exec", "r", "--", process.execPath, "-e", show];
    const { code, stdout } = await cli.run(args, { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject(env);
  });

  test("never becomes arguments, which every user can read", async () => {
    const folder = cli.folder();
    // Writes the arguments of all its ancestors up to exec, while the command runs.
    const traced = join(folder, "traced");
    const store = `embedded:${folder}`;
    const shim = join(folder, "env");
    writeFileSync(shim, `#!/bin/sh\nprintf '%s\\n' "$@" >> ${traced}\nexec /usr/bin/env "$@"\n`, {
      mode: 0o755,
    });
    const path = `${folder}:${process.env["PATH"]}`;
    const args = ["exec", "r", "--store", store, "--", "true"];
    expect((await cli.run(args, { env: { ...env, PATH: path } })).code).toBe(0);
    expect(existsSync(traced)).toBe(false);
  });

  test.each([{}, env])(
    "does not change which command is run: one with = in its name",
    async (more) => {
      const folder = cli.folder();
      writeFileSync(join(folder, "a=b"), "#!/bin/sh\necho it ran\n", { mode: 0o755 });
      const path = { PATH: `${folder}:${process.env["PATH"]}` };
      const { code, stdout } = await cli.run(["exec", "r", "--", "a=b"], {
        env: { ...more, ...path },
      });
      expect({ code, stdout }).toEqual({ code: 0, stdout: "it ran\n" });
    },
  );
});
