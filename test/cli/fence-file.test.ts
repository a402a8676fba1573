import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { builtCli, type Ended } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

function check(file: string, fence: string, ...flags: readonly string[]): Promise<Ended> {
  return cli.run(["fence", "check", "--file", file, ...flags, fence]);
}

/** Returns a file in which fences are kept, with the greatest so far. */
async function kept(fence: string): Promise<string> {
  const file = join(cli.folder(), "report.fence");
  expect(await check(file, fence, "--create")).toMatchObject({ code: 0, stdout: "", stderr: "" });
  return file;
}

describe("fence check in a file", () => {
  test("passes a fence that is not smaller, and refuses a smaller one with 79", async () => {
    const file = await kept("7");
    expect((await check(file, "7")).code).toBe(0);
    expect(await check(file, "6")).toMatchObject({
      code: 79,
      stderr: "holdfast: fence 6 is stale: 7 was seen\n",
    });
    expect(readFileSync(file, "utf8")).toBe("7\n");
    expect((await check(file, "1700000000000001")).code).toBe(0);
    expect((await check(file, "1700000000000000")).code).toBe(79);
  });

  test("still refuses a smaller fence after a crash in the middle of a check", async () => {
    const file = join(cli.folder(), "report.fence");
    mkdirSync(`${file}.fences`);
    writeFileSync(join(`${file}.fences`, "9".padStart(19, "0")), "");
    expect((await check(file, "8")).code).toBe(79);
    expect((await check(file, "9")).code).toBe(0);
  });

  test("counts a number that was written by hand", async () => {
    const file = join(cli.folder(), "report.fence");
    writeFileSync(file, "9\n");
    expect((await check(file, "8")).code).toBe(79);
    expect((await check(file, "9")).code).toBe(0);
  });

  test("leaves a file with other content unchanged", async () => {
    const file = join(cli.folder(), "notes");
    writeFileSync(file, "my notes\n");
    const { code, stderr } = await check(file, "8");
    expect(code).toBe(64);
    expect(stderr).toContain("something else than a fence");
    expect(readFileSync(file, "utf8")).toBe("my notes\n");
  });

  test("refuses a path at which no fence was ever kept, and creates nothing there", async () => {
    const folder = cli.folder();
    const wrong = await check(join(folder, "reprot.fence"), "8");
    expect(wrong.code).toBe(64);
    expect(wrong.stderr).toMatch(/^holdfast: no fence was ever kept in .*: .* --create .*\n$/);
    for (const flags of [[], ["--create"]]) {
      const missing = await check(join(folder, "no", "report.fence"), "8", ...flags);
      expect(missing.code).toBe(64);
      expect(missing.stderr).toMatch(/^holdfast: the folder .*\/no does not exist\n$/);
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  test("refuses a fence that is far ahead of the clock, and does not keep it", async () => {
    const file = await kept("7");
    const huge = "9223372036854775807";
    const { code, stderr } = await check(file, huge);
    expect(code).toBe(64);
    expect(stderr).toMatch(/^holdfast: fence 9223372036854775807 is more than a day ahead .*\n$/);
    expect((await check(file, "8")).code).toBe(0);
    const redis = ["fence", "check", "--redis", "redis://127.0.0.1:1", "--key", "k", huge];
    expect((await cli.run(redis)).code).toBe(64);
  });
});

describe("fence lower", () => {
  test("replaces a kept fence that refuses every holder, and keeps the others", async () => {
    const file = await kept("7");
    const huge = "9000000000000000001";
    writeFileSync(join(`${file}.fences`, huge), "");
    writeFileSync(file, `${huge}\n`);
    const refused = await check(file, "8");
    expect(refused.code).toBe(79);
    expect(refused.stderr).toContain("far ahead of the clock; see holdfast fence lower --help");
    const lowered = await cli.run(["fence", "lower", "--file", file, "9"]);
    expect(lowered).toMatchObject({ code: 0, stdout: `removed ${huge}; kept 9\n`, stderr: "" });
    expect((await check(file, "8")).code).toBe(79);
    expect((await check(file, "9")).code).toBe(0);
    const again = await cli.run(["fence", "lower", "--file", file, "5"]);
    expect(again.stdout).toBe("no kept fence is far ahead of the clock\n");
    expect((await check(file, "8")).code).toBe(79);
  });

  test("refuses a path at which no fence was ever kept", async () => {
    const file = join(cli.folder(), "report.fence");
    expect((await cli.run(["fence", "lower", "--file", file, "9"])).code).toBe(64);
    expect(existsSync(`${file}.fences`)).toBe(false);
  });
});
