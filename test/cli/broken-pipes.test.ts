import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { builtCli, linesOf, until, worker, type Running } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

/** Starts a run whose output, or errors, have no reader from the beginning. */
function withoutReader(stream: "stdout" | "stderr", args: readonly string[]): Running {
  const running = cli.start(args);
  running.child[stream]?.destroy();
  running.child.stdin?.end();
  return running;
}

describe("if nothing reads the messages of exec", () => {
  test("its command runs, and its exit code is that of the command", async () => {
    const ran = join(cli.folder(), "ran");
    const args = ["exec", "r", "--debug", "--", "sh", "-c", `touch ${ran}; exit 5`];
    expect((await withoutReader("stderr", args).ended).code).toBe(5);
    expect(existsSync(ran)).toBe(true);
  });

  test("a command that was never run does not pass for done", async () => {
    const missing = withoutReader("stderr", ["exec", "r", "--", "no-such-command"]);
    expect((await missing.ended).code).toBe(127);
    const file = join(cli.folder(), "pids");
    const holder = cli.start(["exec", "r", "--", ...worker(file)]);
    await linesOf(file, 2);
    const refused = withoutReader("stderr", ["exec", "r", "--wait", "0", "--", "true"]);
    expect((await refused.ended).code).toBe(75);
    holder.child.kill("SIGTERM");
    await holder.ended;
  });

  test("a lost lease stops the command, and ends with 76", async () => {
    const folder = cli.folder();
    const file = join(folder, "pids");
    const store = ["--store", `embedded:${folder}`];
    const args = ["exec", "r", ...store, "--ttl", "1s", "--", ...worker(file)];
    const { ended } = withoutReader("stderr", args);
    await linesOf(file, 2);
    await cli.run(["break", "r", "--yes", ...store]);
    expect((await ended).code).toBe(76);
  });
});

describe("if nothing reads the result", () => {
  test.each(["ls", "help", "completion bash"])("%s ends with 141", async (line) => {
    expect((await withoutReader("stdout", line.split(" ")).ended).code).toBe(141);
  });

  test("watch ends with 141 at the next line", async () => {
    const folder = cli.folder();
    const store = ["--store", `embedded:${folder}`];
    const watching = cli.start(["watch", "--interval", "50ms", ...store]);
    const file = join(folder, "pids");
    const first = cli.start(["exec", "first", ...store, "--", ...worker(file)]);
    await until("it says so", () => watching.stdout().includes("first  held"));
    watching.child.stdout?.destroy();
    first.child.kill("SIGTERM");
    await first.ended;
    expect((await watching.ended).code).toBe(141);
  });

  test("doctor and fence check keep their exit codes", async () => {
    const store = `embedded:${cli.folder()}`;
    const args = ["doctor", "--store", store];
    const { code } = await cli.run(args);
    expect((await withoutReader("stdout", args).ended).code).toBe(code);
    const file = join(cli.folder(), "fence");
    const check = (fence: string): readonly string[] => {
      return ["fence", "check", "--json", "--create", "--file", file, fence];
    };
    expect((await withoutReader("stdout", check("2")).ended).code).toBe(0);
    expect((await withoutReader("stdout", check("1")).ended).code).toBe(79);
  });
});
