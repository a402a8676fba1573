import { describe, expect, test } from "vitest";
import type { ExtendOutcome, ProveOutcome, StoreContext } from "../../src/core/store.ts";
import { type Behaviour, deferred, extended, failed, scene } from "./fake-store.ts";

const ttl = 3_000;
const cause = new Error("another server answers");

/** Returns a scene whose store can call its leases into doubt. */
function doubting(behaviour: Behaviour = {}, renew = false) {
  let context: StoreContext | undefined;
  const made = scene(
    {
      ...behaviour,
      onOpen: (given) => {
        context = given;
      },
    },
    { ttl, renew },
  );
  const reported: string[] = [];
  made.locks.on("doubtful", (event) => reported.push(`doubtful: ${String(event.cause)}`));
  made.locks.on("lost", ({ reason }) => reported.push(`lost: ${reason}`));
  const doubt = (resource?: string): void =>
    context?.doubt(({ resources }) =>
      resource === undefined || resources.includes(resource) ? cause : undefined,
    );
  return { ...made, reported, doubt };
}

describe("a lease that its store calls into doubt", () => {
  test("is doubtful at once, and held again when the store has confirmed it", async () => {
    const answer = deferred<ProveOutcome>();
    const { locks, doubt, reported, times } = doubting({ prove: () => answer.promise });
    const lease = await locks.acquire("a");
    doubt();
    expect(lease.state).toBe("doubtful");
    expect(reported).toEqual([`doubtful: ${String(cause)}`]);
    expect(lease.signal.aborted).toBe(false);
    answer.resolve({ kind: "proven" });
    await expect.poll(() => lease.state).toBe("held");
    expect(times("prove")).toHaveLength(1);
    await locks.close();
  });

  test("is lost at once if the store does not have it any more", async () => {
    const { locks, doubt, reported } = doubting({ prove: async () => ({ kind: "gone" }) });
    const lease = await locks.acquire("a");
    doubt();
    await expect.poll(() => lease.state).toBe("lost");
    expect(reported).toEqual([`doubtful: ${String(cause)}`, "lost: taken"]);
    expect(lease.signal.aborted).toBe(true);
    await locks.close();
  });

  test("is checked in the store again and again until its validity ends", async () => {
    const { locks, doubt, reported, times, clock } = doubting({ prove: async () => failed });
    const lease = await locks.acquire("a");
    doubt();
    await clock.advance(ttl);
    expect(lease.state).toBe("lost");
    expect(reported.at(-1)).toBe("lost: unreachable");
    const asked = times("prove");
    // About a tenth of the TTL apart, with jitter.
    expect(asked.length).toBeGreaterThanOrEqual(8);
    expect(asked.length).toBeLessThanOrEqual(14);
    await locks.close();
  });

  test("is held again after a successful prove() of the user", async () => {
    let away = true;
    const { locks, doubt, clock, times } = doubting({
      prove: async () => (away ? failed : { kind: "proven" }),
    });
    const lease = await locks.acquire("a");
    doubt();
    await clock.advance(1);
    away = false;
    expect(await lease.prove()).toBe(true);
    expect(lease.state).toBe("held");
    const asked = times("prove").length;
    await clock.advance(1_000);
    // One more check was due. It finds that the doubt is over.
    expect(times("prove").length - asked).toBeLessThanOrEqual(1);
    await locks.close();
  });

  test("stays doubtful if the reply belongs to a prove() from before the doubt", async () => {
    const [early, late] = [deferred<ProveOutcome>(), deferred<ProveOutcome>()];
    const answers = [early, late];
    const { locks, doubt } = doubting({
      prove: () => answers.shift()?.promise ?? Promise.resolve(failed),
    });
    const lease = await locks.acquire("a");
    const proving = lease.prove();
    doubt();
    early.resolve({ kind: "proven" });
    await expect(proving).rejects.toThrow("a server was replaced");
    await expect(proving).rejects.toMatchObject({ code: "REPLICATION", fault: "replaced" });
    expect(lease.state).toBe("doubtful");
    late.resolve({ kind: "proven" });
    await expect.poll(() => lease.state).toBe("held");
    await locks.close();
  });

  test("is neither held nor prolonged by an extension from before the doubt", async () => {
    const [answer, proof] = [deferred<ExtendOutcome>(), deferred<ProveOutcome>()];
    const { locks, doubt, clock } = doubting({
      extend: () => answer.promise,
      prove: () => proof.promise,
    });
    const lease = await locks.acquire("a");
    await clock.advance(1_000);
    const remainingMs = lease.remainingMs();
    const extending = lease.extend();
    // Calls on a lease are queued: this one is sent in the next turn.
    await Promise.resolve();
    doubt();
    answer.resolve(extended(ttl));
    await expect(extending).rejects.toMatchObject({ code: "REPLICATION", cause });
    expect(lease.state).toBe("doubtful");
    expect(lease.remainingMs()).toBe(remainingMs);
    proof.resolve({ kind: "proven" });
    await expect.poll(() => lease.state).toBe("held");
    await locks.close();
  });

  test("is not prolonged by an extension from before a doubt that is over", async () => {
    const answer = deferred<ExtendOutcome>();
    const { locks, doubt, clock } = doubting({
      extend: () => answer.promise,
      prove: async () => ({ kind: "proven" }),
    });
    const lease = await locks.acquire("a");
    await clock.advance(1_000);
    const remainingMs = lease.remainingMs();
    const extending = lease.extend();
    await Promise.resolve();
    doubt();
    await expect.poll(() => lease.state).toBe("held");
    answer.resolve(extended(ttl));
    await expect(extending).rejects.toMatchObject({ code: "REPLICATION", fault: "replaced" });
    expect(lease.remainingMs()).toBe(remainingMs);
    expect(lease.state).toBe("held");
    await locks.close();
  });

  test("leaves other leases alone, and those that have ended", async () => {
    const { locks, doubt, times, clock } = doubting({ prove: async () => failed });
    const [one, two] = [await locks.acquire("a"), await locks.acquire("b")];
    doubt("a");
    expect([one.state, two.state]).toEqual(["doubtful", "held"]);
    await one.release();
    await clock.advance(1);
    const asked = times("prove").length;
    await clock.advance(2_000);
    expect(times("prove")).toHaveLength(asked);
    doubt("a");
    expect(one.state).toBe("released");
    await locks.close();
  });

  test("is held again after a successful renewal", async () => {
    const { locks, doubt, clock } = doubting({ prove: async () => failed }, true);
    const lease = await locks.acquire("a");
    doubt();
    expect(lease.state).toBe("doubtful");
    await clock.advance(1_100);
    expect(lease.state).toBe("held");
    await locks.close();
  });
});
