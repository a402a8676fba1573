import { beforeAll, describe, expect, it } from "vitest";
import { StoreError } from "../../src/core/errors.ts";
import { memoryFences, type FenceStore } from "../../src/fencing/http.ts";
import * as mysqlGuards from "../../src/fencing/mysql.ts";
import * as postgresGuards from "../../src/fencing/postgres.ts";
import { redisFences } from "../../src/fencing/redis.ts";
import { shareDatabases } from "./databases.ts";
import { rejectionOf, shuffledFences } from "./lease-like.ts";

const databases = shareDatabases("postgres", "mariadb", "redis");

beforeAll(async () => {
  await databases.postgresPool.query(postgresGuards.guardTableSql());
  await databases.mariadbPool.query(mysqlGuards.guardTableSql());
});

const stores: readonly (readonly [string, () => FenceStore])[] = [
  ["memory", () => memoryFences()],
  ["Redis", () => redisFences(databases.redisClient)],
  ["Postgres", () => postgresGuards.postgresFences(databases.postgresPool)],
  ["MariaDB", () => mysqlGuards.mysqlFences(databases.mariadbPool)],
];

describe.each(stores)("a fence store in %s", (_, create) => {
  it("keeps the greatest fence of many concurrent ones", async () => {
    const store = create();
    const answers = await Promise.all(
      shuffledFences(100, 9).map(async (fence) => ({
        fence,
        answer: await store.admit("race", fence),
      })),
    );
    for (const { fence, answer } of answers) {
      if (!answer.accepted) expect(answer.seen > fence).toBe(true);
    }
    expect(await store.admit("race", 99n)).toEqual({ accepted: false, seen: 100n });
    expect(await store.admit("race", 100n)).toEqual({ accepted: true });
    expect(await store.admit("ra\0ce 🔒", 1n)).toEqual({ accepted: true });
    const beyond = 2n ** 63n - 1n;
    expect(await store.admit("race", beyond)).toEqual({ accepted: true });
    expect(await store.admit("race", beyond - 1n)).toEqual({ accepted: false, seen: beyond });
  });

  it("accepts no fence after a greater one has been accepted", async () => {
    const store = create();
    let greatest = 0n;
    const lane = async (fences: readonly bigint[]): Promise<void> => {
      for (const fence of fences) {
        const before = greatest;
        const { accepted } = await store.admit("order", fence);
        if (!accepted) continue;
        expect(fence >= before).toBe(true);
        if (fence > greatest) greatest = fence;
      }
    };
    await Promise.all([2, 3, 4, 5].map((seed) => lane(shuffledFences(60, seed))));
    expect(greatest).toBe(60n);
  });
});

describe("a fence store", () => {
  it("in memory refuses new resources when full, and forgets none", async () => {
    const store = memoryFences({ maxResources: 2 });
    await store.admit("a", 5n);
    await store.admit("b", 5n);
    expect(await rejectionOf(store.admit("c", 5n))).toBeInstanceOf(StoreError);
    expect(await store.admit("a", 4n)).toEqual({ accepted: false, seen: 5n });
    expect(await store.admit("a", 6n)).toEqual({ accepted: true });
  });

  it.each([
    [
      "Postgres",
      () => postgresGuards.postgresFences(databases.postgresPool, { table: "nowhere.fences" }),
    ],
    ["MariaDB", () => mysqlGuards.mysqlFences(databases.mariadbPool, { table: "app.nowhere" })],
  ])("in %s names the migration if the table is missing", async (_, create) => {
    expect(await rejectionOf(create().admit("a", 1n))).toMatchObject({
      code: "STORE",
      message: expect.stringMatching(/guardTableSql\(".*nowhere.*"\)/),
    });
  });

  it("refuses bad options", () => {
    expect(() => memoryFences({ maxResources: 0 })).toThrow("`maxResources`");
    expect(() => memoryFences({ max: 1 } as never)).toThrow('"max"');
    expect(() => postgresGuards.postgresFences({} as never)).toThrow("`db`");
    expect(() => mysqlGuards.mysqlFences({} as never)).toThrow("`db`");
    expect(() => mysqlGuards.mysqlFences(databases.mariadbPool, { tabel: "a" } as never)).toThrow(
      '"tabel"',
    );
    expect(() => redisFences({})).toThrow("`client`");
  });
});
