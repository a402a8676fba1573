import { once } from "node:events";
import { describe, expect, test } from "vitest";
import {
  lead,
  TermEndedError,
  type Candidate,
  type CandidateEvents,
  type LeadOptions,
  type Term,
} from "../../src/election/index.ts";
import { ClosedError, createLocks, InvalidOptionError, type Locks } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { type ManualClock, manualRuntime, settle } from "../../src/testing/index.ts";
import { untilAborted, Works } from "./works.ts";

const second = 1_000;

interface Scene {
  readonly locks: readonly Locks[];
  readonly clock: ManualClock;
  readonly listenerErrors: readonly unknown[];
}

/** Opens managers of one memory store, on one manual clock. */
function open(count = 1): Scene {
  const { runtime, clock, listenerErrors } = manualRuntime();
  const store = memory();
  const locks = Array.from({ length: count }, () => createLocks(store, { runtime }));
  return { locks, clock, listenerErrors };
}

function managerOf({ locks }: Scene, index = 0): Locks {
  const found = locks[index];
  if (found === undefined) throw new Error(`there is no manager ${index}`);
  return found;
}

function collect(candidate: Candidate): {
  readonly elected: CandidateEvents["elected"][];
  readonly deposed: CandidateEvents["deposed"][];
} {
  const elected: CandidateEvents["elected"][] = [];
  const deposed: CandidateEvents["deposed"][] = [];
  candidate.on("elected", (event) => elected.push(event));
  candidate.on("deposed", (event) => deposed.push(event));
  return { elected, deposed };
}

describe("a candidate", () => {
  test("leads when it has the lease, renews it, and has the fence as its term", async () => {
    const scene = open();
    const locks = managerOf(scene);
    const terms: Term[] = [];
    const candidate = lead(locks, "scheduler", { label: "10.0.0.1:80" }, async (term) => {
      terms.push(term);
      await untilAborted(term.signal);
    });
    const { elected, deposed } = collect(candidate);
    expect(candidate.state).toBe("waiting");
    await settle();
    expect(candidate.state).toBe("leading");
    expect(candidate.term).toBe(terms[0]);
    expect(terms[0]?.fence).toBe(terms[0]?.lease.fence);
    expect(elected).toEqual([
      { name: "scheduler", label: "10.0.0.1:80", fence: terms[0]?.fence, waitedMs: 0 },
    ]);
    await scene.clock.advance(5 * 3_600 * second);
    expect(candidate.state).toBe("leading");
    expect(terms).toHaveLength(1);
    expect(deposed).toEqual([]);
    await candidate.stop();
    expect(candidate.state).toBe("stopped");
    expect(await locks.inspect("scheduler")).toMatchObject({ state: "free" });
    expect(deposed).toMatchObject([{ reason: "stopped", error: undefined }]);
    expect(scene.clock.pendingTimers).toBe(0);
  });

  test("waits while another one leads, and leads with a greater term after it", async () => {
    const scene = open(2);
    const works = new Works();
    const first = lead(managerOf(scene, 0), "scheduler", works.work);
    await settle();
    const successor = lead(managerOf(scene, 1), "scheduler", works.work);
    await scene.clock.advance(60 * second);
    expect([first.state, successor.state]).toEqual(["leading", "waiting"]);
    await first.stop();
    await scene.clock.advance(second);
    expect([first.state, successor.state]).toEqual(["stopped", "leading"]);
    const [one, two] = works.fences;
    expect(two).toBeGreaterThan(one ?? 0n);
    expect(works.atOnceMax).toBe(1);
    await successor.stop();
  });

  test("that resigns keeps the lease until its work has settled, then stands again", async () => {
    const scene = open(2);
    const works = new Works({ lingerMs: 3 * second, clock: scene.clock });
    const [a, b] = [managerOf(scene, 0), managerOf(scene, 1)];
    const first = lead(a, "scheduler", works.work);
    const { deposed } = collect(first);
    await settle();
    const other = lead(b, "scheduler", works.work);
    const resigned = first.resign();
    await scene.clock.advance(2 * second);
    // The work still runs, so the successor still waits.
    expect(first.state).toBe("leading");
    expect(other.state).toBe("waiting");
    expect(works.reasons[0]).toBeInstanceOf(TermEndedError);
    expect(works.reasons[0]).toMatchObject({ code: "TERM_ENDED", reason: "resigned" });
    await scene.clock.advance(2 * second);
    await resigned;
    expect(deposed).toMatchObject([{ reason: "resigned", standsInMs: second }]);
    await scene.clock.advance(2 * second);
    expect([first.state, other.state]).toEqual(["waiting", "leading"]);
    const stopped = other.stop();
    await scene.clock.advance(4 * second);
    await stopped;
    await scene.clock.advance(second);
    expect(first.state).toBe("leading");
    expect(works.atOnceMax).toBe(1);
    const end = first.stop();
    await scene.clock.advance(4 * second);
    await end;
  });

  test("never runs its work twice at a time, even if the lease is lost and the work goes on", async () => {
    const scene = open(2);
    const works = new Works({ lingerMs: 60 * second, clock: scene.clock });
    const first = lead(managerOf(scene, 0), "scheduler", works.work);
    const { deposed, elected } = collect(first);
    await settle();
    await managerOf(scene, 1).break("scheduler");
    await scene.clock.advance(10 * second);
    // The lease is lost, and the work has not noticed.
    expect(works.reasons[0]).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(first.state).toBe("waiting");
    expect(first.term).toBeUndefined();
    expect(works.running).toBe(1);
    expect(elected).toHaveLength(1);
    await scene.clock.advance(60 * second);
    expect(deposed).toMatchObject([{ reason: "lost", error: undefined, standsInMs: 0 }]);
    expect(first.state).toBe("leading");
    expect(works.atOnceMax).toBe(1);
    expect(works.fences).toHaveLength(2);
    const stopped = first.stop();
    await scene.clock.advance(61 * second);
    await stopped;
  });

  test("whose work fails pauses 1 s, then twice as long each time, up to 30 s", async () => {
    const scene = open();
    const error = new Error("no database");
    const candidate = lead(managerOf(scene), "scheduler", () => Promise.reject(error));
    const { deposed } = collect(candidate);
    await scene.clock.advance(200 * second);
    const pauses = deposed.map(({ standsInMs }) => (standsInMs ?? 0) / second);
    expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30]);
    expect(deposed[0]).toMatchObject({ reason: "failed", error });
    expect(JSON.parse(JSON.stringify(deposed[0]))).toMatchObject({ error: "no database" });
    await candidate.stop();
    expect(scene.clock.pendingTimers).toBe(0);
  });

  test("reports an error of its work as a warning of the process if nothing listens", async () => {
    const scene = open();
    const warned = once(process, "warning");
    const candidate = lead(managerOf(scene), "scheduler", () => Promise.reject(new Error("oh")));
    await settle();
    expect(await warned).toMatchObject([{ message: expect.stringContaining("Error: oh") }]);
    await candidate.stop();
  });

  test("whose work led for longer than the longest pause begins with the shortest again", async () => {
    const scene = open();
    let turns = 0;
    const candidate = lead(managerOf(scene), "scheduler", async () => {
      turns += 1;
      if (turns === 3) await new Promise<void>((done) => scene.clock.setTimer(40_000, true, done));
      throw new Error("again");
    });
    const { deposed } = collect(candidate);
    await scene.clock.advance(49 * second);
    expect(deposed.map(({ standsInMs }) => standsInMs)).toEqual([
      1_000, 2_000, 1_000, 2_000, 4_000,
    ]);
    await candidate.stop();
  });

  test("whose work returns stands again after a pause, behind the others", async () => {
    const scene = open(2);
    const turns: string[] = [];
    const candidates = ["a", "b"].map((label, index) =>
      lead(managerOf(scene, index), "scheduler", { label }, () => void turns.push(label)),
    );
    await scene.clock.advance(3_500);
    expect(turns.slice(0, 4)).toEqual(["a", "b", "a", "b"]);
    await Promise.all(candidates.map((candidate) => candidate.stop()));
  });

  test("reports an attempt that cannot succeed, and tries again", async () => {
    const scene = open();
    const store = memory();
    let broken = true;
    const locks = createLocks(
      {
        ...store,
        open(context) {
          const opened = store.open(context);
          const attempt = opened.attempt.bind(opened);
          opened.attempt = async (request) => {
            if (!broken) return await attempt(request);
            const error = new InvalidOptionError("password", "right", "wrong");
            return { kind: "failed", error, retryable: false, cleanup: undefined };
          };
          return opened;
        },
      },
      { runtime: managerRuntime(scene) },
    );
    const candidate = lead(locks, "scheduler", (term) => untilAborted(term.signal));
    const failures: number[] = [];
    candidate.on("candidate-failed", ({ standsInMs }) => failures.push(standsInMs));
    await scene.clock.advance(3_500);
    expect(failures).toEqual([1_000, 2_000, 4_000]);
    broken = false;
    await scene.clock.advance(4_000);
    expect(candidate.state).toBe("leading");
    await candidate.stop();
  });

  test("stops when its signal aborts, or has aborted", async () => {
    const scene = open();
    const controller = new AbortController();
    const works = new Works();
    const locks = managerOf(scene);
    const candidate = lead(locks, "scheduler", { signal: controller.signal }, works.work);
    await settle();
    controller.abort();
    await settle();
    expect(candidate.state).toBe("stopped");
    expect(() => lead(locks, "scheduler", { signal: controller.signal }, works.work)).not.toThrow();
    await settle();
    expect(works.fences).toHaveLength(1);
    expect(await locks.inspect("scheduler")).toMatchObject({ state: "free" });
  });

  test("that is stopped while it waits leaves no lease and no timer", async () => {
    const scene = open(2);
    const works = new Works();
    const holder = await managerOf(scene, 1).acquire("scheduler");
    const candidate = lead(managerOf(scene), "scheduler", works.work);
    await scene.clock.advance(100);
    const [once, again] = [candidate.stop(), candidate.stop()];
    expect(again).toBe(once);
    await once;
    expect(candidate.state).toBe("stopped");
    expect(works.fences).toEqual([]);
    await holder.release();
    expect(scene.clock.pendingTimers).toBe(0);
  });

  test("ends when its manager is closed: the work, and a pause", async () => {
    const scene = open(2);
    const works = new Works();
    const leader = lead(managerOf(scene, 0), "a", works.work);
    const paused = lead(managerOf(scene, 1), "b", () => Promise.reject(new Error("no")));
    const { deposed } = collect(leader);
    collect(paused);
    await settle();
    await Promise.all(scene.locks.map((locks) => locks.close()));
    await settle();
    expect(works.reasons).toEqual([expect.any(ClosedError)]);
    expect(deposed).toMatchObject([{ reason: "stopped" }]);
    expect([leader.state, paused.state]).toEqual(["stopped", "stopped"]);
    expect(scene.clock.pendingTimers).toBe(0);
  });

  test("can be used with `await using`", async () => {
    const scene = open();
    const works = new Works();
    const locks = managerOf(scene);
    {
      await using candidate = lead(locks, "scheduler", works.work);
      await settle();
      expect(candidate.state).toBe("leading");
    }
    expect(works.running).toBe(0);
    expect(await locks.inspect("scheduler")).toMatchObject({ state: "free" });
  });

  test("keeps leading when a listener throws", async () => {
    const scene = open();
    const candidate = lead(managerOf(scene), "scheduler", (term) => untilAborted(term.signal));
    const error = new Error("in a listener");
    candidate.on("elected", () => {
      throw error;
    });
    await settle();
    expect(candidate.state).toBe("leading");
    expect(scene.listenerErrors).toEqual([error]);
    await candidate.stop();
  });
});

describe("wrong arguments of lead", () => {
  const work = (): void => undefined;
  const given: readonly (readonly [string, unknown, LeadOptions, unknown])[] = [
    ["name", 7, {}, work],
    ["work", "a", {}, "work"],
    ["wait", "a", { wait: "1s" } as LeadOptions, work],
    ["ttl", "a", { ttl: "1h" }, work],
    ["maxHold", "a", { maxHold: 1 }, work],
    ["label", "a", { label: "x".repeat(201) }, work],
    ["restart.maxDelay", "a", { restart: { minDelay: "5s", maxDelay: "1s" } }, work],
    ["minDelays", "a", { restart: { minDelays: "5s" } } as LeadOptions, work],
    ["signal", "a", { signal: 1 as never }, work],
  ];
  test.each(given)("are refused at once: %s", async (option, name, options, wrong) => {
    const scene = open();
    const call = (): Candidate =>
      lead(managerOf(scene), name as string, options, wrong as () => void);
    expect(call).toThrow(InvalidOptionError);
    expect(call).toThrow(expect.objectContaining({ option }));
    expect(scene.clock.pendingTimers).toBe(0);
  });

  test("are refused for an object that is no manager, and for a closed one", async () => {
    const locks = managerOf(open());
    await locks.close();
    expect(() => lead({} as Locks, "a", work)).toThrow("a manager that createLocks returned");
    expect(() => lead(locks, "a", work)).toThrow(ClosedError);
  });
});

function managerRuntime({ clock }: Scene): ReturnType<typeof manualRuntime>["runtime"] {
  return { ...manualRuntime().runtime, clock };
}
