import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPostgres, type PostgresServer } from "../../tools/databases/postgres.mjs";
import { freePort } from "../../tools/network/free-port.mjs";
import {
  startRedis,
  startRedisServers,
  type RedisServer,
} from "../../tools/redis/redis-server.mjs";
import { projectRoot } from "../support/source-files.ts";
import { blocksOf, Newcomer, type Block, type Ended } from "./newcomer.ts";

/**
 * Plays a newcomer with nothing but Node.js, who packs the clone, installs it in an empty project,
 * and runs every block of the README and of docs/start as written, in that order.
 */

let newcomer: Newcomer;
let postgres: PostgresServer;
let servers: readonly RedisServer[] = [];
const ports = new Map<string, number>();

beforeAll(async () => {
  servers = [await startRedis(), ...(await startRedisServers(3))];
  postgres = await startPostgres();
  const hosts = ["localhost", "one", "two", "three"];
  for (const [index, host] of hosts.entries()) ports.set(`${host}:6379`, servers[index]?.port ?? 0);
  for (const port of [7001, 7002, 7003]) ports.set(`localhost:${port}`, await freePort());
  newcomer = new Newcomer({
    NEWCOMER_PORTS: JSON.stringify(Object.fromEntries(ports)),
    PGHOST: postgres.host,
    PGPORT: String(postgres.port),
    PGUSER: postgres.user,
    PGDATABASE: postgres.database,
  });
  const cases = [7001, 7002, 7003].map(
    (port) => `${port}) port=${ports.get(`localhost:${port}`)};;`,
  );
  // The documented port becomes a free one.
  newcomer.shim(
    "redis-server",
    `[ "$1" = --port ] || exit 9; case "$2" in ${cases.join(" ")} *) exit 9;; esac; shift 2
    PATH=\${PATH#*:}; cd ${newcomer.root}
    exec redis-server --port $port --pidfile ${newcomer.root}/$port.pid "$@"`,
  );
  newcomer.write("report.sh", "#!/bin/sh\necho reported with $HOLDFAST_FENCE\n");
  newcomer.write("move.sh", "#!/bin/sh\necho moved under $HOLDFAST_RESOURCE\n");
});

afterAll(async () => {
  for (const name of readdirSync(newcomer.root).filter((one) => one.endsWith(".pid"))) {
    process.kill(Number(newcomer.read(name)), "SIGTERM");
  }
  await Promise.all(servers.map((server) => server.stop()));
  await postgres.stop();
  newcomer.remove();
});

/** What a block is for, and a run of it that fails unless it does what the page says. */
interface Plan {
  /** Part of the block. */
  readonly has: string;
  readonly run: (block: string) => Promise<void>;
}

function expectDone({ code, output }: Ended, wanted: RegExp | string): void {
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(wanted) as string });
}

const imports = `
  import { createLocks } from "holdfast";
  import { redis } from "holdfast/redis";
  import { Redis } from "ioredis";`;
/** What the page's earlier program has made, for one that goes on with it. */
const onRedis = `${imports}
  const client = new Redis("redis://localhost:6379");
  const locks = createLocks(redis(client));`;
const closeRedis = "await locks.close(); client.disconnect();";
const reports = "globalThis.writeReport = async ({ fence }) => console.log('wrote', fence);";

const installLmdb: Plan = {
  has: "npm install lmdb",
  run: async (block) => {
    expectDone(await newcomer.shell(block), "");
    expect(existsSync(join(newcomer.project, "node_modules", "lmdb"))).toBe(true);
  },
};

const plans: Readonly<Record<string, readonly Plan[]>> = {
  "README.md": [
    {
      has: "npm pack",
      run: async (block) => {
        const [pack = "", install = ""] = block.split("\n");
        expectDone(await newcomer.shell(pack, newcomer.clone), /holdfast-0\.1\.0\.tgz\n$/);
        expectDone(await newcomer.shell(install), /added \d+ packages/);
      },
    },
    {
      has: "this process alone",
      run: async (block) =>
        expectDone(await newcomer.program(block), /^this process alone, with fence \d+n\n$/),
    },
    {
      has: "fencedUpdate",
      run: async (block) => {
        const pool = new Pool({ connectionString: postgres.url });
        await pool.query("CREATE TABLE invoice (id int PRIMARY KEY, paid boolean DEFAULT false)");
        await pool.query("INSERT INTO invoice (id) VALUES (42)");
        const after = `await db.end(); ${closeRedis}`;
        expectDone(await newcomer.program(onRedis, block, after), /^$/);
        const { rows } = await pool.query("SELECT paid, fence > 0 AS fenced FROM invoice");
        await pool.end();
        expect(rows).toEqual([{ paid: true, fenced: true }]);
      },
    },
    {
      has: "redlock(nodes)",
      run: async (block) => {
        const before = imports.replace("{ redis }", "{ redis as one }");
        const after = `console.log((await locks.nodes()).map(({ lastFault }) => lastFault));
          await locks.close(); for (const node of nodes) node.disconnect();`;
        const { code, output } = await newcomer.program(before, block, after);
        expect(output).toBe("[ undefined, undefined, undefined ]\n");
        expect(code).toBe(0);
      },
    },
    {
      has: "holdfast watch",
      run: async (block) => {
        const [install = "", exec = "", watch = "", demo = ""] = block.split("\n");
        await installLmdb.run(install);
        const watching = newcomer.start(watch.replace(/#.*/, ""));
        // It looks twice a second: only a longer run is surely seen.
        const slow = "npx holdfast exec seen -- sh -c 'sleep 3'";
        for (let run = 0; run < 10 && !watching.output().includes("seen"); run += 1) {
          expectDone(await newcomer.shell(slow), /^$/);
        }
        expect((await watching.end()).output).toContain("seen  held by");
        expectDone(await newcomer.shell(exec), /^reported with \d+\n$/);
        const shown = await newcomer.shell(demo);
        expect(shown.output).toContain("Verdict: it happened as shown.");
        expect(shown.code).toBe(0);
      },
    },
    {
      has: 'embedded("./locks")',
      run: async (block) => {
        const after = `for (const locks of [machine, single]) {
          await locks.using("r", () => console.log("held"));
          await locks.close();
        }`;
        const before = 'import { createLocks } from "holdfast";';
        expectDone(await newcomer.program(before, block, after), /^held\nheld\n$/);
        expect(existsSync(join(newcomer.project, "locks"))).toBe(true);
      },
    },
  ],
  "docs/start/no-server.md": [
    installLmdb,
    {
      has: 'embedded("./locks")',
      run: async (block) => expectDone(await newcomer.program(reports, block), /^wrote \d+n\n$/),
    },
    {
      has: "memory()",
      run: async (block) => expectDone(await newcomer.program(block), /^$/),
    },
    {
      has: "holdfast ls",
      run: async (block) =>
        expectDone(
          await newcomer.shell(block),
          /^reported with \d+\nnothing is held\nmoved under a b\n$/,
        ),
    },
  ],
  "docs/start/one-redis.md": [
    {
      has: "locks.using",
      run: async (block) => expectDone(await newcomer.program(reports, block), /^wrote \d+n\n$/),
    },
    {
      has: "tryAcquire",
      run: async (block) => {
        expectDone(await newcomer.program(onRedis, block, closeRedis), /^$/);
        const held = `const other = createLocks(redis(client));
          await other.acquire("nightly-report", { ttl: "10s" });`;
        const program = await newcomer.program(
          onRedis,
          held,
          block,
          "await other.close();",
          closeRedis,
        );
        expectDone(program, /^another process does it\n$/);
      },
    },
  ],
  "docs/start/quorum.md": [
    {
      has: "redis-server --port",
      run: async (block) => {
        expectDone(await newcomer.shell(block), "");
      },
    },
    {
      has: 'maxTtl: "2s"',
      run: async (block) =>
        expectDone(await newcomer.program(block), /^held by a quorum, with fence \d+n\n$/),
    },
    {
      has: "locks.nodes()",
      run: async (block) => {
        const nodes = `const nodes = [7001, 7002, 7003].map((port) => new Redis(port));
          const locks = createLocks(redlock(nodes, { maxTtl: "2s" }));
          await locks.using("invoice:42", () => undefined);`;
        const before = `${imports.replace("{ redis }", "{ redlock }")}\n${nodes}`;
        const after = "await locks.close(); for (const node of nodes) node.disconnect();";
        const { code, output } = await newcomer.program(before, block, after);
        expect(output.match(/^\S+ admitted /gm)).toHaveLength(3);
        expect(code).toBe(0);
      },
    },
    {
      has: "holdfast doctor",
      run: async (block) => {
        const { code, output } = await newcomer.shell(block);
        // Servers for a try have warnings, for example that they store nothing on the disk.
        expect({ code, output }).toEqual({
          code: 1,
          output: expect.stringMatching(/^warning /m) as string,
        });
        expect(output).not.toMatch(/^error /m);
      },
    },
  ],
};

function titleOf({ kind, text }: Block): string {
  return `${kind}: ${text.split("\n", 1)[0]}`;
}

test("every page that a newcomer reads first has its plan", () => {
  const pages = readdirSync(join(projectRoot, "docs", "start")).map((name) => `docs/start/${name}`);
  expect(Object.keys(plans)).toEqual(["README.md", ...pages.toSorted()]);
});

for (const [page, planned] of Object.entries(plans)) {
  describe(`each block of ${page} does what the text says`, () => {
    const blocks = blocksOf(page);

    test("every block has a plan", () => {
      const wrong = blocks.filter(({ text }, index) => !text.includes(planned[index]?.has ?? "\0"));
      expect(wrong.map(titleOf)).toEqual([]);
      expect(blocks.length).toBe(planned.length);
    });

    for (const [index, block] of blocks.entries()) {
      test(`${index + 1}, ${titleOf(block)}`, async () => planned[index]?.run(block.text), 240_000);
    }
  });
}
