import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { builtCli, until } from "../cli/cli-process.ts";
import { watchLeaks } from "../support/leaks.ts";
import { required } from "../support/requirements.ts";
import { projectRoot } from "../support/source-files.ts";

const page = readFileSync(join(projectRoot, "docs/guides/run-from-cron.md"), "utf8");
const cli = builtCli();
watchLeaks();

/** Returns the blocks of the page in this language. */
function blocks(language: string): readonly string[] {
  const block = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm");
  return [...page.matchAll(block)].map(([, text = ""]) => text);
}

/** Writes a job that appends a line to a file, and a `holdfast` for `PATH`. */
function machine(folder: string): { readonly runs: () => string } {
  const runs = join(folder, "runs");
  writeFileSync(runs, "");
  const programs = {
    holdfast: `exec ${process.execPath} ${cli.program} "$@"`,
    "report.sh": `echo "ran with $HOLDFAST_FENCE" >> ${runs}`,
  };
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return { runs: () => readFileSync(runs, "utf8") };
}

test("the crontab line runs the job on one machine, and ends in silence on the others", async () => {
  const [crontab = ""] = blocks("crontab");
  const [setting, entry = ""] = crontab.trim().split("\n");
  expect(setting).toBe("HOLDFAST_STORE=redis://locks.internal");
  const folder = cli.folder();
  const { runs } = machine(folder);
  const line = entry.replace(/^(\S+ ){5}/, "").replace("/usr/local/bin", folder);
  const [PATH, HOLDFAST_STORE] = [`${folder}:/usr/bin:/bin`, `embedded:${folder}/locks`];
  const asCron = (command: string) => {
    const env = { PATH, HOLDFAST_STORE };
    // The shell becomes the program, so that the test can send it a signal.
    return { env, through: () => ["/bin/sh", "-c", `exec ${command}`] };
  };
  const first = cli.start([], asCron(line));
  await until("the job ran", () => runs() !== "");
  // The others give up after their wait; the test does not wait for ten seconds.
  const other = await cli.run([], asCron(line.replace("exec report", "exec report --wait 100ms")));
  expect(other).toEqual({ code: 0, signal: null, stdout: "", stderr: "" });
  process.kill(first.pid, "SIGTERM");
  expect(await first.ended).toMatchObject({ stdout: "", stderr: "" });
  expect(runs()).toMatch(/^ran with \d+\n$/);
});

test("systemd accepts the units", (context) => {
  const probe = spawnSync("systemd-analyze", ["--version"]);
  required(context, "systemd-analyze", probe.status === 0 ? true : undefined);
  const folder = cli.folder();
  const [service = "", timer = ""] = blocks("ini");
  writeFileSync(join(folder, "report.service"), service);
  writeFileSync(join(folder, "report.timer"), timer);
  const units = [join(folder, "report.service"), join(folder, "report.timer")];
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", ...units], {
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(service).toMatch(/^ExecStart=\/usr\/bin\/env holdfast exec report --once-per 1h /m);
});

test("the entry point of the image runs its command under the lock", async () => {
  const [dockerfile = ""] = blocks("dockerfile");
  const arrayOf = (keyword: string): readonly string[] => {
    const text = new RegExp(`^${keyword} (.*)$`, "m").exec(dockerfile)?.[1] ?? "[]";
    return JSON.parse(text) as readonly string[];
  };
  const [program, ...args] = arrayOf("ENTRYPOINT");
  expect(program).toBe("node_modules/.bin/holdfast");
  const folder = cli.folder();
  writeFileSync(join(folder, "report.js"), 'console.log("fence", process.env.HOLDFAST_FENCE)');
  const env = { HOLDFAST_STORE: `embedded:${folder}/locks` };
  const ended = await cli.run([...args, ...arrayOf("CMD")], { cwd: folder, env });
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(ended.stdout).toMatch(/^fence \d+\n$/);
});
