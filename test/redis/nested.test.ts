import { expect, test } from "vitest";
import { AcquireTimeoutError, SelfDeadlockError } from "../../src/index.ts";
import { collect, rejection, shareRedis } from "../support/redis-harness.ts";

const bench = shareRedis(3);
const key = "invoice:42";

test.each([1, 3])(
  "work that waits forever for its own lock is refused, %i nodes",
  async (nodes) => {
    const locks = await bench.locks(nodes);
    const attempts = collect(locks, "attempt");
    const options = { wait: "forever", label: "report" } as const;
    const error = await locks.using(key, options, async (lease) => {
      const nested = await rejection(locks.using(key, options, () => "never"));
      expect(lease.state).toBe("held");
      return nested;
    });
    expect(error).toBeInstanceOf(SelfDeadlockError);
    expect(String(error)).toContain("is held by this process since");
    // Only the outer lease sent an attempt to a server.
    expect(attempts).toHaveLength(1);
  },
);

test("a finite wait for a lock of the same manager names its lease", async () => {
  const [ours, theirs] = [await bench.locks(3), await bench.locks(3)];
  const contended = collect(ours, "contended");
  const before = Date.now();
  await ours.using(key, { label: "report" }, async () => {
    const own = await rejection(ours.acquire(key, { wait: 50 }));
    expect(own).toBeInstanceOf(AcquireTimeoutError);
    const { holder } = own as AcquireTimeoutError;
    expect(holder).toMatchObject({ self: true, label: "report" });
    expect(Math.abs((holder?.sinceMs ?? 0) - before)).toBeLessThan(60_000);
    expect(String(own)).toContain('(label "report") until the wait of');
    const other = await rejection(theirs.acquire(key, { wait: 50 }));
    expect((other as AcquireTimeoutError).holder).not.toHaveProperty("self");
    expect(await ours.tryAcquire(key)).toBeUndefined();
  });
  expect(contended[0]?.holder?.self).toBe(true);
});
