import { describe, expect, test } from "vitest";
import { lead, leaders, type Leadership } from "../../src/election/index.ts";
import { createLocks, InvalidOptionError, QuorumError, type Locks } from "../../src/index.ts";
import type { Inspection, Store } from "../../src/core/store.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { type ManualClock, manualRuntime, settle } from "../../src/testing/index.ts";
import { untilAborted } from "./works.ts";

interface Scene {
  readonly locks: Locks;
  readonly others: Locks;
  readonly clock: ManualClock;
}

function open(store: Store = memory()): Scene {
  const { runtime, clock } = manualRuntime();
  return { locks: createLocks(store, { runtime }), others: createLocks(store, { runtime }), clock };
}

/** Collects what `leaders` yields until it ends. */
function follow(
  locks: Locks,
  signal?: AbortSignal,
): { readonly seen: Leadership[]; readonly over: Promise<void> } {
  const seen: Leadership[] = [];
  const over = (async () => {
    const options = signal === undefined ? {} : { signal };
    for await (const leadership of leaders(locks, "scheduler", options)) seen.push(leadership);
  })();
  return { seen, over };
}

const noLeader = { state: "no-leader", label: undefined, term: undefined };
const unknown = { state: "unknown", label: undefined, term: undefined };

describe("leaders", () => {
  test("yields no leader, a leader of another manager, and no leader again", async () => {
    const { locks, others, clock } = open();
    const controller = new AbortController();
    const { seen, over } = follow(locks, controller.signal);
    await clock.advance(3_000);
    expect(seen).toEqual([noLeader]);
    const candidate = lead(others, "scheduler", { label: "b:80" }, (term) =>
      untilAborted(term.signal),
    );
    await clock.advance(1_000);
    expect(seen.slice(1)).toEqual([{ state: "led", label: "b:80", term: candidate.term?.fence }]);
    await clock.advance(100_000);
    expect(seen).toHaveLength(2);
    await candidate.stop();
    await clock.advance(1_000);
    expect(seen.slice(2)).toEqual([noLeader]);
    controller.abort();
    await over;
    expect(clock.pendingTimers).toBe(0);
  });

  test("yields each term of a leader, and at once if the manager is its own", async () => {
    const { locks, clock } = open();
    const { seen, over } = follow(locks);
    await settle();
    const candidate = lead(locks, "scheduler", { restart: { minDelay: 1 } }, (term) =>
      untilAborted(term.signal),
    );
    await settle();
    const first = candidate.term?.fence ?? 0n;
    expect(seen.at(-1)).toEqual({ state: "led", label: undefined, term: first });
    await candidate.resign();
    await settle();
    expect(seen.at(-1)).toEqual(noLeader);
    await clock.advance(1);
    const second = candidate.term?.fence;
    expect(second).toBeGreaterThan(first);
    expect(seen.at(-1)).toEqual({ state: "led", label: undefined, term: second });
    await candidate.stop();
    await locks.close();
    await over;
    expect(clock.pendingTimers).toBe(0);
  });

  test("yields a leader that died without a release only until its lease is over", async () => {
    const { locks, others, clock } = open();
    await others.acquire("scheduler", { ttl: "5s", label: "dead" });
    const { seen, over } = follow(locks);
    await clock.advance(6_000);
    expect(seen.map(({ state }) => state)).toEqual(["led", "no-leader"]);
    await locks.close();
    await over;
  });

  test("yields unknown if the store cannot say, and if nodes do not agree", async () => {
    const store = memory();
    let report: Inspection["state"] | "fault" = "fault";
    const { locks, clock } = open({
      ...store,
      open(context) {
        const opened = store.open(context);
        opened.inspect = async (resource) => {
          if (report === "fault") throw new QuorumError("inspect", [resource], [], { quorum: 1 });
          const nothing = { label: undefined, fence: undefined, remainingMs: undefined };
          return { resource, state: report, ...nothing, nodes: [] };
        };
        return opened;
      },
    });
    const { seen, over } = follow(locks);
    await clock.advance(1_000);
    report = "split";
    await clock.advance(1_000);
    expect(seen).toEqual([unknown]);
    report = "free";
    await clock.advance(1_000);
    expect(seen).toEqual([unknown, noLeader]);
    report = "unknown";
    await clock.advance(1_000);
    expect(seen).toEqual([unknown, noLeader, unknown]);
    await locks.close();
    await over;
  });

  test("leaves nothing behind when its loop is left, or its signal has aborted", async () => {
    const { locks, clock } = open();
    for await (const { state } of leaders(locks, "scheduler")) {
      expect(state).toBe("no-leader");
      break;
    }
    const { seen, over } = follow(locks, AbortSignal.abort());
    await over;
    expect(seen).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("refuses wrong arguments at once", () => {
    const { locks } = open();
    expect(() => leaders(locks, 7 as never)).toThrow(InvalidOptionError);
    expect(() => leaders(locks, "a", { every: 1 })).toThrow("`every`");
    expect(() => leaders(locks, "a", { signal: 1 as never })).toThrow("`signal`");
    expect(() => leaders({} as Locks, "a")).toThrow("a manager that createLocks returned");
  });
});
