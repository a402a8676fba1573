import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseStoreAddress, storeIdentity } from "../../src/cli/store-address.ts";
import { migrate } from "../../src/stores/postgres/index.ts";
import { freePort } from "../../tools/network/free-port.mjs";
import { type PostgresServer, startPostgres } from "../../tools/databases/postgres.mjs";
import { watchLeaks } from "../support/leaks.ts";
import { projectRoot } from "../support/source-files.ts";
import { builtCli } from "./cli-process.ts";

const cli = builtCli();
let server: PostgresServer;

watchLeaks();

beforeAll(async () => {
  server = await startPostgres();
  const pool = new Pool({ connectionString: server.url });
  await migrate(pool);
  await pool.end();
});

afterAll(() => server.stop());

/** The package `pg` is found from the working directory. */
const cwd = projectRoot;

test("exec runs under a lock in Postgres, and others see it", async () => {
  const store = ["--store", server.url];
  const inner = `${process.execPath} ${cli.program} ls --json --store ${server.url}`;
  const shell = ["sh", "-c", `echo "$HOLDFAST_FENCE"; ${inner}`];
  const { code, stdout, stderr } = await cli.run(["exec", "job", ...store, "--", ...shell], {
    cwd,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [fence, ...seen] = stdout.split("\n");
  expect(BigInt(fence ?? "")).toBeGreaterThan(1_000_000_000_000_000n);
  expect(seen.join("")).toContain(`"fence":"${fence}"`);
  expect((await cli.run(["ls", ...store], { cwd })).stdout).not.toContain("job");
});

test("a held lock is reported with its holder, and can be broken", async () => {
  const store = ["--store", server.url];
  const holder = cli.start(["exec", "long", ...store, "--", "sleep", "60"], { cwd });
  let shown = "";
  while (!shown.includes("held")) {
    shown = (await cli.run(["inspect", "long", ...store], { cwd })).stdout;
  }
  const refused = await cli.run(["exec", "long", "--wait", "0", ...store, "--", "true"], { cwd });
  expect(refused.code).toBe(75);
  const broken = await cli.run(["break", "long", "--yes", ...store], { cwd });
  expect({ code: broken.code, stderr: broken.stderr }).toEqual({ code: 0, stderr: "" });
  expect((await holder.ended).code).toBe(76);
});

test("doctor and bench work on Postgres", async () => {
  const doctor = await cli.run(["doctor", "--json", "--store", server.url], { cwd });
  expect(JSON.parse(doctor.stdout)).toMatchObject({ findings: [{ code: "persistence-off" }] });
  expect(doctor.code).toBe(1);
  const bench = ["bench", "--json", "--duration", "200ms", "--in-flight", "8"];
  const measured = await cli.run([...bench, "--store", server.url], { cwd });
  expect({ code: measured.code, stderr: measured.stderr }).toEqual({ code: 0, stderr: "" });
});

test("faults of the set-up are reported at once, without the password", async () => {
  const port = await freePort();
  const run = async (url: string, ...args: readonly string[]): Promise<[number | null, string]> => {
    const { code, stderr } = await cli.run([...args, "--store", url], { cwd });
    expect(stderr).not.toContain("s3cret");
    return [code, stderr];
  };
  const closed = `postgres://holdfast:s3cret@127.0.0.1:${port}/postgres`;
  const [code, stderr] = await run(closed, "ls");
  expect(code).toBe(69);
  expect(stderr).toContain("Postgres is not reachable: connect ECONNREFUSED");
  expect((await run(closed, "doctor"))[0]).toBe(2);
  const [missing, advice] = await run(`${server.url}?schema=elsewhere`, "ls");
  expect(missing).toBe(69);
  expect(advice).toContain('the schema "elsewhere" of the locks is missing or too old');
  const [denied] = await run(server.url.replace("holdfast@", "unknown:s3cret@"), "ls");
  expect(denied).toBe(77);
  expect((await run(`${server.url}?maxTtl=soon`, "ls"))[0]).toBe(64);
  expect((await run("postgres://s3cret%@host", "ls"))[0]).toBe(64);
  expect((await run("postgres:s3cret", "ls"))[0]).toBe(64);
});

test("addresses of the same locks have one identity", () => {
  const idOf = (text: string): string => storeIdentity(parseStoreAddress(text, "."));
  const id = idOf("postgres://a:x@host/db");
  expect(idOf("postgresql://b:y@host:5432/db?sslmode=require&maxTtl=5s")).toBe(id);
  expect(idOf("postgres://a@host/other")).not.toBe(id);
  expect(idOf("postgres://a@host/db?schema=locks")).not.toBe(id);
});
