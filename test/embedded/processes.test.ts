import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { isAvailable } from "../support/requirements.ts";
import { createLocks, type Locks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { type Worker, Workshop } from "./processes.ts";

const workshop = new Workshop();
afterAll(() => workshop.close());

/** So long that no event in these tests can be explained by its end. */
const hour = String(3_600_000);

function open(directory: string): Locks {
  const locks = createLocks(embedded(directory, { maxTtl: "24h" }), { wait: "forever" });
  onTestFinished(() => locks.close());
  return locks;
}

describe("a holder that dies", () => {
  test("frees its lock long before the TTL when it is killed", async () => {
    const directory = workshop.newDirectory();
    const locks = open(directory);
    const worker = workshop.start([directory, "hold", "job", hour]);
    const fence = await worker.held();
    expect(await locks.tryAcquire("job")).toBeUndefined();
    const waiting = locks.acquire("job");
    await worker.kill();
    expect((await waiting).fence).toBeGreaterThan(fence);
  });

  test("frees its lock when it ends without releasing it, and the lease does not keep it alive", async () => {
    const directory = workshop.newDirectory();
    const worker = workshop.start([directory, "leave", "job", hour]);
    const fence = await worker.held();
    expect(await worker.exit).toBe(0);
    const lease = await open(directory).tryAcquire("job");
    expect(lease?.fence).toBeGreaterThan(fence);
  });

  test("is reported as a free lock by inspect", async () => {
    const directory = workshop.newDirectory();
    const locks = open(directory);
    const worker = workshop.start([directory, "hold", "job", hour]);
    const fence = await worker.held();
    expect(await locks.inspect("job")).toMatchObject({ state: "held", fence });
    await worker.kill();
    expect(await locks.inspect("job")).toMatchObject({ state: "free" });
  });
});

describe("a holder that is stopped", () => {
  test("is not dead, so its lock stays", async () => {
    const directory = workshop.newDirectory();
    const locks = open(directory);
    const worker = workshop.start([directory, "hold", "job", hour]);
    await worker.held();
    worker.signal("SIGSTOP");
    expect(await locks.tryAcquire("job")).toBeUndefined();
    worker.signal("SIGCONT");
    worker.say("release");
    expect(await worker.line()).toBe("released true");
    expect(await locks.tryAcquire("job")).toBeDefined();
  });

  test("finds its lease lost when it resumes after the TTL, and the next holder has a greater fence", async () => {
    const directory = workshop.newDirectory();
    const locks = open(directory);
    const worker = workshop.start([directory, "hold", "job", "500"]);
    const fence = await worker.held();
    worker.signal("SIGSTOP");
    const lease = await locks.acquire("job");
    expect(lease.fence).toBeGreaterThan(fence);
    worker.signal("SIGCONT");
    expect(await worker.line()).toBe("lost expired");
    worker.say("release");
    expect(await worker.line()).toBe("released false");
    expect(await lease.prove()).toBe(true);
  });
});

/** Runs a process in its own pid namespace, as containers do. Needs root or similar rights. */
const unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
const unshared = spawnSync(unshare[0] ?? "", [...unshare.slice(1), "true"]);
const canUnshare = isAvailable("unshare and rights for namespaces", unshared.status === 0);

describe.skipIf(!canUnshare)("a holder in another pid namespace", () => {
  test("is never considered dead by its pid", async () => {
    const directory = workshop.newDirectory();
    const locks = open(directory);
    const worker = workshop.start([directory, "hold", "job", hour], { through: unshare });
    await worker.held();
    await worker.kill();
    expect(await locks.tryAcquire("job")).toBeUndefined();
  });

  test("excludes and is excluded, even by a process with the same pid", async () => {
    const directory = workshop.newDirectory();
    const locks = open(directory);
    const first = workshop.start([directory, "hold", "first", hour], { through: unshare });
    const second = workshop.start([directory, "hold", "second", hour], { through: unshare });
    const fences = await Promise.all([first.held(), second.held()]);
    const ours = await locks.acquire("ours");
    expect(new Set([...fences, ours.fence]).size).toBe(3);
    for (const resource of ["first", "second", "ours"]) {
      const other = workshop.start([directory, "attempt", resource], { through: unshare });
      expect(await other.line()).toBe("held by others");
      expect(await locks.tryAcquire(resource)).toBeUndefined();
    }
    first.say("release");
    expect(await first.line()).toBe("released true");
    expect(await locks.tryAcquire("first")).toBeDefined();
  });
});

test("without lmdb the error says what to install", async () => {
  const worker = workshop.start([workshop.newDirectory(), "attempt", "job"], { lmdb: "without" });
  expect(await worker.line()).toMatch(/^UnsupportedError UNSUPPORTED .*npm install lmdb$/);
  expect(await worker.exit).toBe(0);
});

test.skipIf(!isAvailable("the rights of root", process.getuid?.() === 0))(
  "without permission the error says so",
  async () => {
    const directory = workshop.newDirectory();
    await open(directory).tryAcquire("job");
    const boot = readdirSync(directory).find((name) => name.startsWith("boot-")) ?? "";
    const withoutRights = 65_534;
    chmodSync(workshop.folder, 0o755);
    const attempt = async (path: string): Promise<string> =>
      await workshop.start([path, "attempt", "job"], { uid: withoutRights }).line();
    const denied = /^StoreError STORE no permission to keep locks in /;
    // In turn: the directory cannot be read, cannot be written, then its database, then its lock
    // file.
    chmodSync(directory, 0o700);
    expect(await attempt(directory)).toMatch(denied);
    chmodSync(directory, 0o755);
    expect(await attempt(directory)).toMatch(denied);
    expect(await attempt(join(directory, "new"))).toMatch(denied);
    chmodSync(directory, 0o777);
    expect(await attempt(directory)).toMatch(denied);
    chmodSync(join(directory, boot, "locks.mdb"), 0o666);
    expect(await attempt(directory)).toMatch(denied);
    chmodSync(join(directory, boot, "locks.mdb-lock"), 0o666);
    expect(await attempt(directory)).toMatch(/^held by others$/);
  },
);

// LMDB itself would lose commits here: see src/stores/embedded/commit-guard.ts.
test("no lock is lost while other processes open the database", async () => {
  const directory = workshop.newDirectory();
  const roles = ["writes", "writes", "opens", "opens"];
  const workers = roles.map((role) =>
    workshop.start([directory, role, role === "opens" ? "300" : ""]),
  );
  const [first, second, ...openers] = workers;
  for (const opener of openers) expect(await opener.line()).toBe("well");
  for (const writer of [first, second]) {
    writer?.say("close");
    expect(await writer?.line()).toBe("well");
  }
});

describe("many processes that are killed at random", () => {
  const workersCount = 4;
  const sectionsMin = 1_500;
  const killsMin = 40;
  const recordBytes = 64;

  test("lose no update, and their fences always grow", { timeout: 240_000 }, async () => {
    const directory = workshop.newDirectory();
    const work = workshop.newDirectory();
    mkdirSync(work);
    const [file, done] = [join(work, "shared"), join(work, "done")];
    writeFileSync(file, "");
    writeFileSync(done, "");
    const start = (): Worker => workshop.start([directory, "sections", "job", file, done]);
    const workers = Array.from({ length: workersCount }, start);
    const unexpected: unknown[] = [];
    let kills = 0;
    let ended = 0;
    while (unexpected.length === 0 && (ended < sectionsMin || kills < killsMin)) {
      // Works undisturbed for a random time, so that a kill can come at any moment.
      const goal = ended + Math.random() * 60;
      while (ended < goal) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        ended = lines(done).length;
      }
      // Every other kill goes to the process in the critical section, or the last one that was.
      const inside = kills % 2 === 0 ? Number(readFileSync(`${file}.in`, "utf8")) : 0;
      const found = workers.findIndex(({ pid }) => pid === inside);
      const index = found < 0 ? Math.floor(Math.random() * workersCount) : found;
      const victim = workers[index];
      victim?.signal("SIGKILL");
      const how = await victim?.exit;
      if (how !== "SIGKILL") unexpected.push(how);
      kills += 1;
      workers[index] = start();
    }
    await Promise.all(workers.map((worker) => worker.kill()));
    expect(unexpected).toEqual([]);

    const records = lines(file).map((line) => line.trim().split(" "));
    expect(readFileSync(file).length).toBe(records.length * recordBytes);
    expect(records.map(([index]) => index)).toEqual(records.map((_, index) => String(index)));
    const fences = records.map(([, fence]) => BigInt(fence ?? 0));
    expect(
      fences.filter((fence, index) => index > 0 && fence <= (fences[index - 1] ?? 0n)),
    ).toEqual([]);
    const written = records.map(([, , id]) => id);
    expect(new Set(written).size).toBe(written.length);
    const missing = lines(done).filter((id) => !new Set(written).has(id));
    expect(missing).toEqual([]);
    console.log(`${records.length} sections, ${kills} kills, last fence ${fences.at(-1)}`);
    expect(await open(directory).tryAcquire("job")).toBeDefined();
  });
});

function lines(path: string): string[] {
  return readFileSync(path, "utf8").split("\n").filter(Boolean);
}
