import { setTimeout as sleep } from "node:timers/promises";
import mysql from "mysql2/promise";
import { Pool } from "pg";
import { describe, expect, test } from "vitest";
import { FenceAheadError } from "../../src/index.ts";
import { memoryMemo, mysqlMemo, postgresMemo, redisMemo } from "../../src/once/index.ts";
import { leaseLike, rejectionOf, shuffledFences } from "../guards/lease-like.ts";
import { dial } from "../support/redis-harness.ts";
import { shareMemos } from "./memos.ts";

const kinds = shareMemos();
const minute = 60_000;
const begun = { state: "begun", text: "{}" } as const;
const done = (text: string): { state: "done"; text: string } => ({ state: "done", text });

describe.each(kinds)("a memo in $name", (kind) => {
  test("returns what was written, with the fence of the writer", async () => {
    const memo = await kind.open("plain");
    expect(await memo.read("a")).toBeUndefined();
    expect(await memo.write(leaseLike(7n), "a", begun, minute)).toBeUndefined();
    expect(await memo.read("a")).toEqual({ ...begun, fence: 7n });
    const text = JSON.stringify({ result: "Ünïcödé 😀 '\"\\ \0" });
    expect(await memo.write(leaseLike(7n), "a", done(text), minute)).toBeUndefined();
    expect(await memo.read("a")).toEqual({ ...done(text), fence: 7n });
    expect(await memo.read("A")).toBeUndefined();
    expect(await memo.read("a ")).toBeUndefined();
  });

  test("refuses a smaller fence, and reports it to its lease", async () => {
    const memo = await kind.open("stale");
    await memo.write(leaseLike(9n), "a", begun, minute);
    for (const record of [begun, done("{}"), { state: "failed", text: "{}" } as const]) {
      const late = leaseLike(8n, "a");
      expect(await rejectionOf(memo.write(late, "a", record, minute))).toMatchObject({
        code: "FENCE_REJECTED",
        fence: 8n,
        seen: 9n,
      });
      expect(late.rejections).toEqual([{ resource: "a", fence: 8n, seen: 9n, guard: kind.name }]);
    }
    expect(await memo.read("a")).toEqual({ ...begun, fence: 9n });
  });

  test("keeps a record that is done, and returns it to a later holder", async () => {
    const memo = await kind.open("done");
    await memo.write(leaseLike(5n), "a", done(`{"result":"1"}`), minute);
    const kept = { ...done(`{"result":"1"}`), fence: 5n };
    expect(await memo.write(leaseLike(6n), "a", begun, minute)).toEqual(kept);
    expect(await memo.read("a")).toEqual(kept);
    // The writer itself may repeat its write, whose reply may have been lost.
    await memo.write(leaseLike(5n), "a", done(`{"result":"1"}`), minute);
    expect(await memo.read("a")).toEqual(kept);
  });

  test("lets a later holder begin again after `begun` and after `failed`", async () => {
    const memo = await kind.open("again");
    await memo.write(leaseLike(5n), "a", begun, minute);
    expect(await memo.write(leaseLike(6n), "a", begun, minute)).toBeUndefined();
    const failed = { state: "failed", text: "{}" } as const;
    expect(await memo.write(leaseLike(6n), "a", failed, minute)).toBeUndefined();
    expect(await memo.write(leaseLike(8n), "a", begun, minute)).toBeUndefined();
    expect(await memo.read("a")).toEqual({ ...begun, fence: 8n });
  });

  test("forgets a record at its time, but not its fence", async () => {
    const memo = await kind.open("times");
    await memo.write(leaseLike(5n), "a", done("{}"), 1);
    await sleep(20);
    expect(await memo.read("a")).toBeUndefined();
    const late = memo.write(leaseLike(4n), "a", done("{}"), minute);
    expect(await rejectionOf(late)).toMatchObject({ code: "FENCE_REJECTED", seen: 5n });
    expect(await memo.write(leaseLike(6n), "a", begun, minute)).toBeUndefined();
  });

  test("ends with the greatest fence, in whichever order holders write", async () => {
    const memo = await kind.open("order");
    const fences = shuffledFences(20, 7);
    const outcomes = await Promise.all(
      fences.map(async (fence) => {
        return await memo.write(leaseLike(fence), "a", begun, minute).then(
          () => "stored",
          (error: { code?: string }) => error.code,
        );
      }),
    );
    for (const outcome of outcomes) expect(["stored", "FENCE_REJECTED"]).toContain(outcome);
    expect(await memo.read("a")).toEqual({ ...begun, fence: 20n });
  });

  test("has one of many results that are written at once, and returns it to all others", async () => {
    const memo = await kind.open("race");
    const fence = 5n;
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const record = done(`{"result":"${index}"}`);
        return (await memo.write(leaseLike(fence), "a", record, minute))?.text ?? record.text;
      }),
    );
    const kept = await memo.read("a");
    expect(new Set(outcomes)).toEqual(new Set([kept?.text]));
  });

  test("compares fences exactly, up to the greatest BIGINT of this time", async () => {
    const memo = await kind.open("exact");
    const now = BigInt(Date.now()) * 1_000n;
    await memo.write(leaseLike(now + 1n), "a", begun, minute);
    const late = memo.write(leaseLike(now), "a", begun, minute);
    expect(await rejectionOf(late)).toMatchObject({ seen: now + 1n });
    const ahead = memo.write(leaseLike(now * 2n), "a", begun, minute);
    expect(await rejectionOf(ahead)).toBeInstanceOf(FenceAheadError);
  });

  test("keeps a long key and a long text", async () => {
    const memo = await kind.open("long");
    const key = "k".repeat(2_000);
    const text = JSON.stringify({ result: "x".repeat(65_536) });
    await memo.write(leaseLike(5n), key, done(text), minute);
    expect(await memo.read(key)).toEqual({ ...done(text), fence: 5n });
    expect(await memo.read(`${key}k`)).toBeUndefined();
  });
});

describe("a memo that cannot be used", () => {
  test("in SQL names the statement that creates its table", async () => {
    const [, postgres, mariadb] = kinds;
    const pool = new Pool({ connectionString: postgres?.url });
    const memo = postgresMemo((text, params) => pool.query(text, params), { table: "gone" });
    await expect(memo.read("a")).rejects.toThrow('run the statement of postgresMemoSql("gone")');
    await expect(memo.write(leaseLike(1n), "a", begun, minute)).rejects.toThrow("postgresMemoSql");
    await pool.end();
    const own = mysql.createPool(mariadb?.url ?? "");
    const other = mysqlMemo(own);
    await expect(other.read("a")).rejects.toThrow("run the statement of mysqlMemoSql() once");
    await expect(other.write(leaseLike(1n), "a", begun, minute)).rejects.toThrow("mysqlMemoSql()");
    await own.end();
  });

  test("in Redis leaves a key alone that holds something else", async () => {
    const client = dial(Number(new URL(kinds[0]?.url ?? "").port));
    await client.set("foreign:a", "text");
    await client.hset("foreign:b", "field", "text");
    const memo = redisMemo(client, { prefix: "foreign:" });
    for (const key of ["a", "b"]) {
      await expect(memo.read(key)).rejects.toThrow(/holds a (string|hash without a record)/);
      await expect(memo.write(leaseLike(1n), key, begun, minute)).rejects.toThrow("holds a");
    }
    expect(await client.get("foreign:a")).toBe("text");
  });

  test("in memory refuses a new key when it is full, until records and fences are old", async () => {
    let nowMs = 1_000_000;
    const memo = memoryMemo({ maxRecords: 2, nowMs: () => nowMs });
    await memo.write(leaseLike(1n), "a", begun, minute);
    await memo.write(leaseLike(2n), "b", begun, minute);
    const refused = memo.write(leaseLike(3n), "c", begun, minute);
    await expect(refused).rejects.toThrow("raise `maxRecords`");
    nowMs += minute + 86_400_000;
    expect(await memo.write(leaseLike(4n), "c", begun, minute)).toBeUndefined();
    expect(() => memoryMemo({ maxRecords: 0 })).toThrow("`maxRecords`");
  });

  test("of a wrong client or a wrong option is refused at once", () => {
    expect(() => redisMemo({})).toThrow("`client`");
    expect(() => redisMemo({}, { prefixes: "a" } as never)).toThrow("prefixes");
    expect(() => postgresMemo({} as never)).toThrow("`db`");
    expect(() => mysqlMemo({} as never)).toThrow("a mysql2 pool");
  });
});
