import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DemoEvent } from "../../src/cli/demo/events.ts";
import { accountLane, labelKind, workerLane } from "../../src/cli/demo/lanes.ts";
import { drawTimeline, legend } from "../../src/cli/demo/timeline.ts";
import { type Account, type Check, type Facts, judge } from "../../src/cli/demo/verdict.ts";
import { startRedis, type RedisServer } from "../../tools/redis/redis-server.mjs";
import { type DemoProcess, type Ended, eventually, isStopped, Stage } from "./demo-process.ts";

interface Report {
  readonly ok: boolean;
  readonly checks: readonly Check[];
  readonly accounts: { readonly open: Account; readonly guarded: Account };
  readonly events: readonly DemoEvent[];
}

let stage: Stage;
let redis: RedisServer;
let embedded: DemoProcess;
let plain: Ended;
let unguarded: Ended;
let report: Report;
let onRedis: Report;

beforeAll(async () => {
  stage = await Stage.open();
  redis = await startRedis();
  embedded = stage.start();
  // At the same time, because they wait most of the time.
  const all = [
    embedded,
    stage.start("--json"),
    stage.start("--json", "--store", redis.url),
    stage.start("--without-fence-check"),
  ];
  const [first, second, third, last] = await Promise.all(all.map(({ ended }) => ended));
  if (first === undefined || last === undefined) throw new Error("unreachable");
  [plain, unguarded] = [first, last];
  report = reportOf(second);
  onRedis = reportOf(third);
});

afterAll(async () => {
  await stage?.close();
  await redis?.stop();
});

describe("the demo without a terminal", () => {
  test("shows all five steps, and ends with 0", () => {
    expect(plain.stderr).toBe("");
    expect(plain.stdout.match(/^ ok {2}/gm)).toHaveLength(5);
    expect(plain.stdout).not.toMatch(/^ NO /m);
    expect(unwrapped(plain)).toMatch(/took over \d+ ms later, \d\.\d s before the lease ran out/);
    expect(unwrapped(plain)).toMatch(/late write went through: \d+ deposits were confirmed/);
    expect(unwrapped(plain)).toMatch(/the same write was refused \(fence \d+, seen \d+\)/);
    expect(plain.stdout).toContain("Verdict: it happened as shown.");
    expect(plain.code).toBe(0);
  });

  test("prints plain text: no escape sequences, no line wider than 80 columns", () => {
    expect(plain.stdout).toMatch(/^[\n\u0020-\u007E]*$/);
    expect(plain.stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  test("leaves no process and no file", () => {
    expect(embedded.workers()).toEqual([]);
    expect(readdirSync(embedded.temporary)).toEqual([]);
  });

  test("ends with 1 if the guard accepts the late write", () => {
    expect(unguarded.code).toBe(1);
    expect(unguarded.stdout).toMatch(/^ NO {2}the guarded account took \w+'s late write/m);
    expect(unguarded.stdout).toContain("this is NOT what the demo is to show");
  });

  test("prints the same facts as JSON", () => {
    expect(report.ok).toBe(true);
    const { open, guarded } = report.accounts;
    expect(open.balance).toBeLessThan(open.expected);
    expect(guarded).toMatchObject({ balance: guarded.expected, refused: 1 });
  });

  test("runs on a Redis server, where the lease of a dead holder has to expire", () => {
    expect(onRedis.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(labelKind(onRedis.events)).toBe("turn");
    expect(onRedis.checks.map(({ what }) => what).join("\n")).toContain(
      "when the lease had run out",
    );
  });

  test("refuses an unknown store, in one line", async () => {
    const { code, stderr, stdout } = await stage.start("--store", "mysql://x").ended;
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).toMatch(/^holdfast: expected the store to be embedded:DIR, redis:.*\n$/);
  });
});

describe("an interrupted demo", () => {
  interface Interrupted {
    readonly demo: DemoProcess;
    readonly frozen: readonly number[];
    readonly ended: Ended;
  }

  const interrupted = new Map<NodeJS.Signals, Interrupted>();

  /**
   * Interrupts the demo at the worst moment: while a worker is stopped and cannot end by itself.
   */
  async function interrupt(signal: NodeJS.Signals): Promise<void> {
    const demo = stage.start();
    await demo.said(/is frozen \(SIGSTOP\)/);
    // On a busy machine the worker takes a moment to receive the stop signal.
    let frozen: number[] = [];
    await eventually("a worker that is stopped", () => {
      frozen = demo.workers().filter(isStopped);
      return frozen.length > 0;
    });
    demo.child.kill(signal);
    interrupted.set(signal, { demo, frozen, ended: await demo.ended });
  }

  beforeAll(async () => {
    await Promise.all((["SIGINT", "SIGTERM", "SIGKILL"] as const).map(interrupt));
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("ends every process on %s, including the frozen worker", (signal, exitCode) => {
    const { demo, frozen, ended } = after(signal);
    expect(frozen).toHaveLength(1);
    expect(ended.code).toBe(exitCode);
    expect(demo.workers()).toEqual([]);
    expect(readdirSync(demo.temporary)).toEqual([]);
  });

  test("leaves no worker, not even a frozen one, when the demo itself is killed", async () => {
    const { demo, frozen } = after("SIGKILL");
    expect(frozen).toHaveLength(1);
    await eventually("the end of the workers", () => demo.workers().length === 0);
  });

  function after(signal: NodeJS.Signals): Interrupted {
    const found = interrupted.get(signal);
    if (found === undefined) throw new Error(`no demo got ${signal}`);
    return found;
  }
});

describe("the verdict", () => {
  const facts = (events: readonly DemoEvent[]): Facts => {
    const last = (account: string): number =>
      events.findLast((event) => event.kind === "write" && event.account === account) === undefined
        ? 100
        : report.accounts[account as "open" | "guarded"].balance;
    const balances = { open: last("open"), guarded: last("guarded") };
    return { openingBalance: 100, deposit: 10, balances, noticesDeadHolders: true };
  };
  const failing = (events: readonly DemoEvent[]): number[] =>
    judge(events, facts(events)).flatMap(({ ok }, index) => (ok ? [] : [index]));

  test("is good for the recorded events", () => {
    expect(failing(report.events)).toEqual([]);
  });

  test.each([
    ["no worker was killed", [0, 1], (event: DemoEvent) => event.kind !== "killed"],
    ["no worker was frozen", [2, 3, 4], (event: DemoEvent) => event.kind !== "frozen"],
    ["the frozen worker did not notice", [2], (event: DemoEvent) => event.kind !== "lost"],
    ["no late write was refused", [4], (event: DemoEvent) => !isRefused(event)],
    ["nothing happened", [0, 1, 2, 3, 4], () => false],
  ] as const)("is bad if %s", (_what, checks, keep) => {
    expect(failing(report.events.filter(keep))).toEqual(checks);
  });

  test("is bad if two workers hold the lock at once", () => {
    const first = report.events.find((event) => event.kind === "acquired");
    if (first?.kind !== "acquired") throw new Error("no worker acquired the lock");
    const intruder = { ...first, worker: "eve", fence: "1", atMs: first.atMs + 1 };
    const events = report.events.toSpliced(report.events.indexOf(first) + 1, 0, intruder);
    expect(failing(events)).toContain(0);
    const greater = { ...intruder, fence: `${first.fence}0` };
    expect(
      failing(report.events.toSpliced(report.events.indexOf(first) + 1, 0, greater)),
    ).toContain(0);
  });

  test("is bad if the late write changed nothing", () => {
    const balances = {
      open: report.accounts.open.expected,
      guarded: report.accounts.guarded.balance,
    };
    const checks = judge(report.events, { ...facts(report.events), balances });
    expect(checks.map(({ ok }) => ok)).toEqual([true, true, true, false, true]);
  });

  test("is bad if a dead holder was not noticed in time", () => {
    const known = { ...facts(report.events), noticesDeadHolders: true };
    expect(judge(onRedis.events, known)[1]?.ok).toBe(false);
  });
});

describe("the timeline", () => {
  test.each([40, 80, 120, 400])("fits into %i columns", (columns) => {
    for (const unicode of [true, false]) {
      const look = { color: false, unicode, columns };
      const lines = [
        ...drawTimeline(lanes(), { ...look, totalMs: endMs() }),
        ...legend(look, "fence"),
      ];
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
    }
  });

  test("shows the kill, the freeze and both late writes", () => {
    const look = { color: false, unicode: false, columns: 120 };
    const lines = drawTimeline(lanes(), { ...look, totalMs: endMs() });
    const killed = report.events.find(({ kind }) => kind === "killed")?.worker;
    const frozen = report.events.find(({ kind }) => kind === "frozen")?.worker;
    expect(laneOf(lines, killed)).toMatch(/[\d=]X$/);
    expect(laneOf(lines, frozen)).toMatch(/#+~+!0/);
    expect(laneOf(lines, "open")).toMatch(/\+ *!/);
    expect(laneOf(lines, "guarded")).toMatch(/\+ *0/);
  });

  function endMs(): number {
    return report.events.at(-1)?.atMs ?? 0;
  }

  function lanes(): ReturnType<typeof workerLane>[] {
    const { events } = report;
    return [
      ...["ann", "bob", "cy", "dee"].map((name) => workerLane(events, name, endMs())),
      accountLane(events, "open"),
      accountLane(events, "guarded"),
    ];
  }

  function laneOf(lines: readonly string[], name: string | undefined): string {
    return lines.find((line) => line.startsWith(` ${name} `)) ?? "";
  }
});

function reportOf(ended: Ended | undefined): Report {
  if (ended?.stdout === "") throw new Error(`no report: ${ended.stderr}`);
  return JSON.parse(ended?.stdout ?? "") as Report;
}

function isRefused(event: DemoEvent): boolean {
  return event.kind === "write" && event.answer === "refused";
}

function unwrapped({ stdout }: Ended): string {
  return stdout.replaceAll(/\n {5}(?=\S)/g, " ");
}
