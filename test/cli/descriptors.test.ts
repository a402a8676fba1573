import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { builtCli } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

/** Runs exec in a shell that has opened descriptors. `$F` is a folder for files. */
function withOpen(redirections: string, folder: string) {
  return (command: readonly string[]): readonly string[] => {
    return ["bash", "-c", `F=${folder}; exec ${redirections}; exec "$@"`, "bash", ...command];
  };
}

describe.each([
  ["with a gate", {}],
  ["without a gate", { "odd.name": "x" }],
])("%s, the command", (_, env) => {
  test("gets the descriptors that the caller of exec has opened", async () => {
    const folder = cli.folder();
    writeFileSync(join(folder, "in"), "read\n");
    const through = withOpen("3>$F/out 5<$F/in 20>>$F/far", folder);
    const script = 'read -r line <&5; echo "$line" >&3; echo far >&20';
    const args = ["exec", "r", "--", "bash", "-c", script];
    expect(await cli.run(args, { through, env })).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(join(folder, "out"), "utf8")).toBe("read\n");
    expect(readFileSync(join(folder, "far"), "utf8")).toBe("far\n");
  });

  test("gets both ends of a pipe, as a job of make does", async () => {
    const folder = cli.folder();
    const pipe = `3<>$F/fifo 4>&3`;
    const through = (command: readonly string[]) => [
      "bash",
      "-c",
      `F=${folder}; mkfifo $F/fifo; exec ${pipe}; rm $F/fifo; exec "$@"`,
      "bash",
      ...command,
    ];
    const args = ["exec", "r", "--", "bash", "-c", "echo token >&4; read -r got <&3; echo $got"];
    expect(await cli.run(args, { through, env })).toMatchObject({ code: 0, stdout: "token\n" });
  });

  test("gets no pipe, event or socket of holdfast itself", async () => {
    const args = ["exec", "r", "--", "ls", "-l", "/proc/self/fd"];
    const { stdout } = await cli.run(args, { env });
    // A runner of tests may leave greater ones to all its processes.
    const low = [...stdout.matchAll(/ (\d+) -> (\S+)/g)].filter(([, fd]) => Number(fd) < 64);
    const inner = low.filter(
      ([, fd, target]) => Number(fd) > 2 && /pipe|anon|socket/.test(`${target}`),
    );
    expect(low.length).toBeGreaterThan(3);
    expect(inner).toEqual([]);
  });
});

test("the command runs if the caller has opened all descriptors that a shell can name", async () => {
  const folder = cli.folder();
  const all = [3, 4, 5, 6, 7, 8, 9].map((number) => `${number}>>$F/${number}`).join(" ");
  const script = "for n in 3 4 5 6 7 8 9; do echo $n >&$n; done";
  const args = ["exec", "r", "--", "sh", "-c", script];
  const through = withOpen(all, folder);
  expect(await cli.run(args, { through })).toMatchObject({ code: 0, stderr: "" });
  for (const number of [3, 9]) {
    expect(readFileSync(join(folder, String(number)), "utf8")).toBe(`${number}\n`);
  }
});
