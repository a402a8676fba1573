import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { Pool } from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { buildPrograms } from "../../scripts/build.mjs";
import * as holdfast from "../../src/index.ts";
import { redlock } from "../../src/stores/redis/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { startPostgres } from "../../tools/databases/postgres.mjs";
import { startRedisServers } from "../../tools/redis/redis-server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((name) =>
    join("docs", name),
  ),
].filter((name) => name.endsWith(".md"));

/** What a fragment may take as given. Global, so that a fragment may declare it itself. */
const given = `
declare const locks: import("holdfast").Locks;
declare const lease: import("holdfast").Lease;
declare const client: import("ioredis").Redis & import("pg").PoolClient;
declare const pool: import("pg").Pool;
declare const balance: bigint;
declare const createLocks: typeof import("holdfast").createLocks;
declare const redlock: typeof import("holdfast/redis").redlock;
declare const redlockGroups: typeof import("holdfast/redis").redlockGroups;
declare const Redis: typeof import("ioredis").Redis;
type Node = import("ioredis").Redis;
declare const a1: Node, a2: Node, a3: Node, b1: Node, b2: Node, b3: Node;
declare const c1: Node, c2: Node, c3: Node;
declare function writeReport(how: { fence: bigint; signal: AbortSignal }): Promise<void>;
declare const socket: { ready: boolean; request(command: readonly string[]): Promise<unknown> };
declare const url: string, body: string;
declare const invoice: { readonly chargeKey?: string };
declare const app: { use(handler: (
  req: import("node:http").IncomingMessage,
  res: import("node:http").ServerResponse,
  next: (error?: unknown) => unknown,
) => void): void };
declare function serve(request: Request): Promise<Response>;
declare function build(signal: AbortSignal): Promise<void>;
declare function charge(order: { idempotencyKey: string; signal?: AbortSignal }): Promise<string>;
declare const assertFenced: typeof import("holdfast/fencing/postgres").assertFenced;
declare const fencedUpdate: typeof import("holdfast/fencing/postgres").fencedUpdate;
declare const postgresFences: typeof import("holdfast/fencing/postgres").postgresFences;
declare const fenceGuard: typeof import("holdfast/fencing/http").fenceGuard;
declare const withFence: typeof import("holdfast/fencing/http").withFence;
declare const throwIfFenceRejected: typeof import("holdfast/fencing/http").throwIfFenceRejected;
`;

interface Sample {
  /** Page and line, as a file name. */
  readonly name: string;
  readonly code: string;
  /** The name in `<!-- runnable: name -->` before it: a test runs it. */
  readonly runnable: string | undefined;
}

function samplesIn(page: string, text: string): Sample[] {
  const sample = /(?:<!-- runnable: (\w+) -->\n+)?^```ts\n([^]*?)^```$/gm;
  return [...text.matchAll(sample)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    const name = `${page.replaceAll(/\.md$|[^\w]/g, "-").toLowerCase()}${line}.mts`;
    return { name, code: match[2] ?? "", runnable: match[1] };
  });
}

function samplesOf(page: string): Sample[] {
  return samplesIn(page, readFileSync(join(root, page), "utf8"));
}

/** The sources behind each name that the package exports. */
function sourcesByName(): Map<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    exports: Record<string, string | { types: string }>;
  };
  return new Map(
    Object.entries(exports).flatMap(([subpath, target]) => {
      if (typeof target === "string") return [];
      const source = target.types.replace("./dist/", "src/").replace(/\.d\.ts$/, ".ts");
      return [[`holdfast${subpath.slice(1)}`, join(root, source)]];
    }),
  );
}

/** A folder outside of the project that finds the same packages. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  symlinkSync(join(root, "node_modules"), join(path, "node_modules"));
  return path;
}

/** What the compiler says about the samples; what it may say about the sources is not asked. */
function complaints(samples: readonly Sample[]): string[] {
  const path = folder();
  writeFileSync(join(path, "given.d.ts"), given);
  for (const { name, code } of samples) writeFileSync(join(path, name), `${code}\nexport {};\n`);
  const paths = Object.fromEntries([...sourcesByName()].map(([name, source]) => [name, [source]]));
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: { paths, allowJs: false, noUnusedLocals: false },
    files: ["given.d.ts", ...samples.map(({ name }) => name)],
  };
  writeFileSync(join(path, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", path], {
    cwd: path,
    encoding: "utf8",
  });
  return stdout
    .split("\n")
    .filter((line) => /^(given\.d\.ts|tsconfig\.json|[\w-]+\.mts)\b/.test(line));
}

describe("the code in the documentation", () => {
  test("compiles against the sources", () => {
    const samples = pages.flatMap(samplesOf);
    expect(samples.length).toBeGreaterThan(8);
    expect(complaints(samples)).toEqual([]);
  });

  test("is really compiled: a sample with a mistake gives an error", () => {
    const page = "```ts\nawait locks.acquire(42);\nlocks.lock();\n```\n";
    const found = complaints(samplesIn("wrong.md", page));
    expect(found.map((line) => line.replace(/:.*/, ""))).toEqual([
      "wrong-1.mts(1,21)",
      "wrong-1.mts(2,7)",
    ]);
  });
});

test("the example of the page on testing runs as written", async () => {
  const code = runnableOf("docs/guides/testing.md", "testing");
  const path = join(folder(), "testing.ts");
  writeFileSync(path, `${code}\nexport const state = lease.state;\n`);
  expect(await import(path)).toMatchObject({ state: "lost" });
});

test("the example of the page on Postgres runs as written", async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  const pool = new Pool({ connectionString: postgres.url });
  onTestFinished(() => pool.end());
  await pool.query("CREATE TABLE account (id int PRIMARY KEY, total int)");
  await pool.query("INSERT INTO account VALUES (42, 5)");
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("PGHOST", postgres.host).stubEnv("PGPORT", String(postgres.port));
  vi.stubEnv("PGUSER", postgres.user).stubEnv("PGDATABASE", postgres.database);
  const path = join(folder(), "database.ts");
  writeFileSync(path, runnableOf("docs/guides/locks-in-postgres.md", "database"));
  await import(path);
  expect((await pool.query("SELECT total FROM account")).rows).toEqual([{ total: 15 }]);
});

describe("the programs of the README", () => {
  watchLeaks();

  // The store of the guide runs in package.test.ts, with the built package.
  test("all have a test, and no other sample claims to run", () => {
    const names = pages.flatMap(samplesOf).flatMap(({ runnable }) => runnable ?? []);
    expect(names.toSorted()).toEqual(["database", "fence", "first", "quorum", "store", "testing"]);
  });

  test("take a first lock, with one Redis", async () => {
    const servers = await startRedisServers(1);
    onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))));
    const code = runnableOf("README.md", "first");
    expect(code).toContain('"redis://localhost:6379"');
    const path = join(folder(), "first.ts");
    writeFileSync(path, code.replace("redis://localhost:6379", String(servers[0]?.url)));
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    onTestFinished(() => log.mockRestore());
    await import(path);
    expect(log.mock.calls).toEqual([["this process alone, with fence", expect.any(BigInt)]]);
  });

  test("fence a write in Postgres", async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const pool = new Pool({ connectionString: postgres.url });
    onTestFinished(() => pool.end());
    await pool.query("CREATE TABLE invoice (id int PRIMARY KEY, paid boolean DEFAULT false)");
    await pool.query("INSERT INTO invoice (id) VALUES (42)");

    const given = [
      `import { createLocks } from "holdfast";`,
      `import { memory } from "holdfast/memory";`,
    ];
    const locks = "const locks = createLocks(memory());";
    const code = [withSources(given.join("\n")), runnableOf("README.md", "fence")].join("\n");
    const path = join(folder(), "fence.ts");
    writeFileSync(
      path,
      `${code.replace("const db", `${locks}\nconst db`)}\nexport { db, locks };\n`,
    );
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv("PGHOST", postgres.host).stubEnv("PGPORT", String(postgres.port));
    vi.stubEnv("PGUSER", postgres.user).stubEnv("PGDATABASE", postgres.database);
    const { db, locks: used } = (await import(path)) as { db: Pool; locks: holdfast.Locks };
    await used.close();
    await db.end();

    const { rows } = await pool.query("SELECT paid, fence > 0 AS fenced FROM invoice");
    expect(rows).toEqual([{ paid: true, fenced: true }]);
  });

  test("lock on a quorum", async () => {
    const servers = await startRedisServers(3);
    onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))));
    await admitAll(servers);
    let code = runnableOf("README.md", "quorum");
    for (const [index, url] of ["redis://one", "redis://two", "redis://three"].entries()) {
      expect(code).toContain(`"${url}"`);
      code = code.replace(`"${url}"`, `"${servers[index]?.url}"`);
    }
    const given = [`import { createLocks } from "holdfast";`, `import { Redis } from "ioredis";`];
    const path = join(folder(), "quorum.ts");
    writeFileSync(path, `${withSources(given.join("\n"))}\n${code}\nexport { locks, nodes };\n`);
    const { locks, nodes } = (await import(path)) as { locks: holdfast.Locks; nodes: Redis[] };
    const lease = await locks.acquire("invoice:42");
    expect(lease.state).toBe("held");
    await locks.close();
    for (const node of nodes) node.disconnect();
  });
});

/** The sample of that name, with the sources in place of the package. */
function runnableOf(page: string, name: string): string {
  const found = samplesOf(page).filter(({ runnable }) => runnable === name);
  if (found.length !== 1) throw new Error(`${page} has ${found.length} samples called ${name}`);
  return withSources(found[0]?.code ?? "");
}

function withSources(code: string): string {
  let program = code;
  for (const [name, source] of sourcesByName()) {
    program = program.replace(`from "${name}"`, `from ${JSON.stringify(source)}`);
  }
  return program;
}

/** Admits the servers, as after some time in use: no call waits for a first admission. */
async function admitAll(servers: readonly { readonly url: string }[]): Promise<void> {
  const clients = servers.map(({ url }) => new Redis(url));
  const locks = holdfast.createLocks(redlock(clients, { maxTtl: "1s" }));
  const lease = await locks.acquire("first", { wait: "30s" });
  await lease.release();
  // What the documentation says to do when `maxTtl` changes.
  await Promise.all(clients.map((client) => client.hset("holdfast:node", "max", "30000")));
  await locks.close();
  for (const client of clients) client.disconnect();
}

describe("the quickstart", () => {
  test("shows what happens, and says so by its exit code", async () => {
    const path = folder();
    // The package as it would be installed, built from these sources and not from an old dist/.
    await buildPrograms(join(path, "dist"));
    copyFileSync(join(root, "package.json"), join(path, "package.json"));
    mkdirSync(join(path, "examples"));
    const script = join(path, "examples", "quickstart.mjs");
    copyFileSync(join(root, "examples", "quickstart.mjs"), script);
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ {3}\w+ +prints with fence \d+$/m);
    expect(stdout).toMatch(/using\(\) rejects with LEASE_LOST/);
    expect(stdout).toMatch(/fence \d+: refused, \d+ was seen/);
  });
});

describe("the README", () => {
  test("has at most 150 lines of at most 120 columns", () => {
    const lines = readFileSync(join(root, "README.md"), "utf8").trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(150);
    expect(lines.filter((line) => line.length > 120)).toEqual([]);
  });
});

describe("the reference tables", () => {
  const options = readFileSync(join(root, "docs", "reference", "options.md"), "utf8");
  const errors = readFileSync(join(root, "docs", "reference", "errors.md"), "utf8");
  const source = (path: string): string => readFileSync(join(root, "src", path), "utf8");

  test("name every error and its code", () => {
    const classes = Object.keys(holdfast).filter((name) => /^(?!Holdfast|is).*Error$/.test(name));
    expect(classes.length).toBeGreaterThan(8);
    for (const name of classes) {
      const code = name.replace(/Error$/, "").replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_");
      expect(errors).toMatch(new RegExp(`\`${name}\` +\\| \`${code.toUpperCase()}\``));
      expect(errors).toContain(`### \`${name}\`, code \`${code.toUpperCase()}\``);
    }
  });

  test("name every event and every field of it", () => {
    const [, body = ""] = /interface LockEvents \{([^]*?)^\}/m.exec(source("core/events.ts")) ?? [];
    const [, stalls = ""] =
      /interface StallReport \{([^]*?)^\}/m.exec(source("core/time/stall-report.ts")) ?? [];
    const events = [...body.matchAll(/^ {2}"?([a-z-]+)"?: ([^]*?);$(?=\n {2}\S|\n*$)/gm)];
    expect(events.length).toBeGreaterThan(12);
    for (const [, name = "", type = ""] of events) {
      const row = errors.split("\n").find((line) => line.startsWith(`| \`${name}\` `));
      const whole = type.replace("StallReport", stalls);
      for (const [, field] of whole.matchAll(/readonly (\w+):/g)) {
        expect(row, name).toContain(`\`${field}\``);
      }
    }
  });

  test("name every option", () => {
    const names = [
      ...source("core/options.ts").matchAll(/^ {2}readonly (\w+)\?:/gm),
      ...source("stores/redis/options.ts").matchAll(/^ {2}readonly (\w+)\?:/gm),
    ].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(14);
    // Objects of options: their fields have rows of their own.
    const objects = new Set(["retry", "drift", "replicas"]);
    for (const option of names.filter((name) => !objects.has(name ?? ""))) {
      expect(options).toMatch(new RegExp(`^\\| \`(\\w+\\.)?${option}\` `, "m"));
    }
  });
});
