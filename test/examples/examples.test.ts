import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BuiltProject, buildProject } from "../support/built-project.ts";
import { startPostgres } from "../../tools/databases/postgres.mjs";
import { startRedisServers } from "../../tools/redis/redis-server.mjs";
import { projectRoot } from "../support/source-files.ts";

/** What each example must print when it is run as its README says. */
const examples: Readonly<Record<string, readonly RegExp[]>> = {
  "quickstart.mjs": [/using\(\) rejects with LEASE_LOST/, /fence \d+: refused, \d+ was seen/],
  "fenced-postgres.mjs": [/slow: fence \d+ is refused, \d+ has written/, /balance 150: nothing/],
  "long-job.mjs": [/^ {2}renewed for \d+ ms$/m, /^done$/m],
  "transfer.mjs": [/with locks: .*in all 4000, should be 4000/],
  "cron-once.mjs": [/^kill -9/m, /^8 ticks, each run once$/m],
  "leader-hand-over.mjs": [/^kill -9 v2-/m, /^3 terms, each with a greater fence, and no two/m],
  "charge-once.mjs": [/^first worker: killed after the charge$/m, /^3 requests, 1 charge$/m],
  "http-idempotency.mjs": [/^k1, two books: 422/m, /^2 orders of 5 requests$/m],
  "worker-pool.mjs": [/^kill -9/m, /^24 jobs, each finished once$/m],
  "http-express.mjs": [/slow writes with fence \d+: refused, \d+ was seen/, /says: from quick/],
  "http-fastify.mjs": [/slow writes with fence \d+: refused, \d+ was seen/, /says: from quick/],
  "http-hono.mjs": [/slow writes with fence \d+: refused, \d+ was seen/, /says: from quick/],
  "migrating-from-redlock.mjs": [
    /redlock holds it: {2}holdfast's tryAcquire returns undefined/,
    /holdfast holds it: redlock's acquire throws/,
    /expired lease returns { released: false, reason: 'expired' }/,
  ],
};

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let project: BuiltProject;
let temporary: string;

beforeAll(async () => {
  project = await buildProject(["examples", "tools"]);
  temporary = join(project.folder, "temporary");
});

afterAll(() => project?.remove());

// At the same time, because they wait most of the time.
describe.concurrent("the examples", () => {
  test("are all run here, and are all in their README", () => {
    const found = readdirSync(join(projectRoot, "examples")).filter((name) =>
      name.endsWith(".mjs"),
    );
    expect(found.toSorted()).toEqual(Object.keys(examples).toSorted());
    const readme = readFileSync(join(projectRoot, "examples", "README.md"), "utf8");
    for (const name of found) expect(readme).toContain(`| \`node examples/${name}\` `);
  });

  test.each(Object.entries(examples))("%s prints what its README promises", async (name, said) => {
    const folder = newFolder();
    const { code, stdout, stderr } = await run(name, { TMPDIR: folder });
    expect(stderr).toBe("");
    for (const text of said) expect(stdout).toMatch(text);
    expect(code).toBe(0);
    expect(readdirSync(folder).filter((file) => !isKept(file))).toEqual([]);
  });

  test("fenced-postgres.mjs works on a given server as well", async ({ onTestFinished }) => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const { code, stdout } = await run("fenced-postgres.mjs", { DATABASE_URL: postgres.url });
    expect(stdout).toMatch(/slow: fence \d+ is refused, \d+ has written/);
    expect(code).toBe(0);
  });

  test("migrating-from-redlock.mjs uses the given servers", async ({ onTestFinished }) => {
    const servers = await startRedisServers(3);
    onTestFinished(async () => {
      await Promise.all(servers.map((server) => server.stop()));
    });
    const REDIS_URL = servers.map(({ url }) => url).join(",");
    // Without redis-server on the PATH, it cannot start its own servers.
    const { code, stderr } = await run("migrating-from-redlock.mjs", {
      REDIS_URL,
      PATH: temporary,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(await servers[0]?.command("EXISTS", "holdfast:node")).toBe(1);
  });

  test("migrating-from-redlock.mjs names the missing program", async () => {
    const { code, stderr } = await run("migrating-from-redlock.mjs", { PATH: temporary });
    expect(code).toBe(1);
    expect(stderr).toMatch(/Install redis-server, or set REDIS_URL/);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "long-job.mjs ends cleanly on %s, and continues when it is started again",
    async (signal) => {
      const folder = join(temporary, `long-job-${signal}`);
      const child = start("long-job.mjs", {}, [folder]);
      // Only once: a second signal would end it at once, as intended.
      let signalled = false;
      const { code, stdout } = await endOf(child, (output) => {
        if (signalled || !/^step 2 of 20$/m.test(output)) return;
        signalled = child.kill(signal);
      });
      expect(code).toBe(0);
      const stopped = Number(/^stopped after step (\d+)/m.exec(stdout)?.[1]);
      expect(stopped).toBeGreaterThanOrEqual(2);
      expect(stopped).toBeLessThan(20);

      const again = await endOf(start("long-job.mjs", {}, [folder]));
      expect(again.stdout).toContain(`going on after step ${stopped}\n`);
      const [first] = /^step \d+(?= of 20$)/m.exec(again.stdout) ?? [];
      expect(first).toBe(`step ${stopped + 1}`);
      expect(again.stdout).toMatch(/^done$/m);
      rmSync(folder, { recursive: true });
    },
  );
});

/** True if the file is the state that the long job keeps for its next run. */
function isKept(name: string): boolean {
  return name === "holdfast-example-long-job";
}

function run(name: string, env: Readonly<Record<string, string>>): Promise<Ended> {
  return endOf(start(name, env));
}

let folders = 0;

/** Creates a folder for temporary files, so that a test can see what is left there. */
function newFolder(): string {
  folders += 1;
  const folder = join(temporary, String(folders));
  mkdirSync(folder, { recursive: true });
  return folder;
}

function start(
  name: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): ChildProcess {
  return spawn(process.execPath, [join("examples", name), ...args], {
    cwd: project.folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      REDIS_URL: undefined,
      DATABASE_URL: undefined,
      TMPDIR: newFolder(),
      ...env,
    },
  });
}

async function endOf(child: ChildProcess, onOutput?: (stdout: string) => void): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
    onOutput?.(stdout);
  });
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => {
    child.on("close", resolve);
  });
  return { code, stdout, stderr };
}
