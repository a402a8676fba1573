import { spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { thisMachine } from "../../src/stores/embedded/machine.ts";
import { manualRuntime } from "../../src/testing/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { isAvailable } from "../support/requirements.ts";
import { machineWith, newDirectory, Port } from "./store-port.ts";

watchLeaks();

const isLinux = isAvailable("the /proc of Linux", process.platform === "linux");
const immortal = (): boolean => false;
const firstBoot = machineWith({ bootId: "1".repeat(32), isDead: immortal });
const secondBoot = machineWith({ bootId: "2".repeat(32), isDead: immortal });

describe("a reboot", () => {
  test("ends every lock, and later fences are above all earlier ones", async () => {
    const directory = newDirectory();
    const before = new Port(directory, firstBoot);
    const { fence } = await before.take("job");
    await before.store.close();

    const again = new Port(directory, firstBoot);
    expect(await again.attempt("job")).toMatchObject({ kind: "held", holder: { fence } });
    await again.store.close();

    const after = new Port(directory, secondBoot);
    expect(await after.store.inspect("job")).toMatchObject({ state: "free" });
    expect((await after.take("job")).fence).toBeGreaterThan(fence);
    expect(readdirSync(directory).filter((name) => name.startsWith("boot-"))).toEqual([
      `boot-${secondBoot.bootId}`,
    ]);
  });

  test("repeats no fence, even if only the file of fences is left on the disk", async () => {
    const directory = newDirectory();
    let last = 0n;
    for (let boot = 1; boot <= 4; boot += 1) {
      const machine = machineWith({ bootId: String(boot).repeat(32) });
      const port = new Port(directory, machine);
      // First fewer fences than are reserved at a time, then more.
      for (let count = 0; count < boot * 700; count += 1) {
        const grant = await port.take("job");
        expect(grant.fence).toBeGreaterThan(last);
        last = grant.fence;
        if (count % 100 === 0) expect(mark(directory)).toBeGreaterThanOrEqual(last);
        await port.store.release(grant);
      }
      await port.store.close();
      // Simulates a power failure: everything that was not synced is gone.
      rmSync(join(directory, `boot-${machine.bootId}`), { recursive: true });
    }
    expect(mark(directory)).toBeGreaterThanOrEqual(last);
  });

  test("repeats no fence if the folder of an earlier boot comes back", async () => {
    const directory = newDirectory();
    const fences: bigint[] = [];
    for (const machine of [firstBoot, secondBoot, firstBoot, secondBoot]) {
      const port = new Port(directory, machine);
      fences.push((await port.take(`job-${fences.length}`)).fence);
      await port.store.close();
    }
    expect(fences).toEqual(fences.toSorted((a, b) => Number(a - b)));
    expect(new Set(fences).size).toBe(fences.length);
  });

  test.skipIf(!isLinux)("is not assumed while a process of the other boot still runs", async () => {
    const directory = newDirectory();
    const running = new Port(directory, firstBoot);
    const grant = await running.take("job");
    const masked = new Port(directory, secondBoot);
    const fault = await masked.fault();
    expect(fault.message).toContain("another boot id");
    expect(fault).toMatchObject({ code: "STORE", retryable: false });
    expect(await running.store.prove(grant)).toEqual({ kind: "proven" });
    await running.store.close();
    expect((await masked.take("job")).fence).toBeGreaterThan(grant.fence);
  });

  test("is detected without a boot id, by a lease time that is impossible in this boot", async () => {
    const directory = newDirectory();
    const system = { bootId: undefined, isDead: immortal };
    const longUptime = manualRuntime();
    const before = new Port(directory, machineWith(system), longUptime.runtime);
    longUptime.clock.pause(10 * 86_400_000);
    const { fence } = await before.take("job", 60_000);
    await before.store.close();
    const after = new Port(directory, machineWith(system));
    expect((await after.take("job", 60_000)).fence).toBeGreaterThan(fence);
    expect((await after.attempt("job")).kind).toBe("held");
  });

  test("is not assumed from a clock that is not shared, which is an error", async () => {
    const directory = newDirectory();
    await new Port(directory, machineWith({ timeNamespace: "time:[1]" })).take("job");
    const other = new Port(directory, machineWith({ timeNamespace: "time:[2]" }));
    expect((await other.fault()).message).toContain("time namespace");
  });
});

describe.skipIf(!isLinux)("the pid of a holder", () => {
  const { self } = thisMachine();

  test("that another process has now does not keep the lock", async () => {
    const directory = newDirectory();
    const before = new Port(directory, machineWith({ self: { ...self, started: "1" } }));
    const { fence } = await before.take("job");
    // The pid is that of this process, but an earlier process with it took the lock.
    expect((await new Port(directory).take("job")).fence).toBeGreaterThan(fence);
  });

  test.each([
    ["of another pid namespace", { place: "pid:[1]" }],
    ["that is not known to mean anything", { place: "" }],
  ])("%s proves nothing", async (_what, strange) => {
    const directory = newDirectory();
    const pid = 2 ** 22 + 1;
    const other = new Port(directory, machineWith({ self: { ...self, pid, ...strange } }));
    await other.take("job");
    expect((await new Port(directory).attempt("job")).kind).toBe("held");
  });

  test("that no process has frees the lock", async () => {
    const directory = newDirectory();
    const gone = machineWith({ self: { ...self, pid: 2 ** 22 + 1 } });
    await new Port(directory, gone).take(["a", "b"]);
    await new Port(directory).take("b");
  });

  test("of a zombie frees the lock", async () => {
    // The child of the shell ends on this input. Its parent is `sleep` by then, which never reaps
    // it; the shell itself might have.
    const script = "exec 3<&0; (read line <&3) & echo $!; exec sleep 600";
    const parent = spawn("sh", ["-c", script]);
    onTestFinished(async () => {
      parent.kill("SIGKILL");
      await new Promise((resolve) => parent.on("close", resolve));
    });
    const pid = Number(await new Promise((resolve) => parent.stdout.once("data", resolve)));
    const isSleep = (): boolean => readFileSync(`/proc/${parent.pid}/comm`, "utf8") === "sleep\n";
    while (!isSleep()) await setImmediate();
    parent.stdin.end("end\n");
    let fields: string[];
    do {
      await setImmediate();
      fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ");
    } while (fields[2] !== "Z");
    const zombie = { pid, started: fields[21], place: self.place };
    expect(thisMachine().isDead(zombie)).toBe(true);
    expect(thisMachine().isDead({ ...zombie, place: "pid:[1]" })).toBe(false);
  });

  test("of a living process of another user does not free the lock", () => {
    const stat = readFileSync("/proc/1/stat", "utf8");
    const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    expect(thisMachine().isDead({ pid: 1, started, place: self.place })).toBe(false);
  });
});

describe("a step of the wall clock", () => {
  test.each([
    ["forward", 86_400_000],
    ["back", -86_400_000],
  ])("%s frees no lock", async (_what, stepMs) => {
    const { runtime, clock } = manualRuntime();
    const store = embedded(newDirectory());
    const [ours, theirs] = [createLocks(store, { runtime }), createLocks(store, { runtime })];
    onTestFinished(() => ours.close());
    onTestFinished(() => theirs.close());
    const lease = await ours.acquire("job", { ttl: "10s" });
    clock.stepWall(stepMs);
    await clock.advance(1);
    // The holder uses the clock with less time left. The entry ends by the monotonic clock.
    expect(lease.state).toBe(stepMs > 0 ? "lost" : "held");
    expect(await theirs.tryAcquire("job")).toBeUndefined();
    await clock.advance(9_998);
    expect(await theirs.tryAcquire("job")).toBeUndefined();
    await clock.advance(1);
    const next = await theirs.tryAcquire("job");
    expect(next?.fence).toBeGreaterThan(lease.fence);
    expect(lease.state).toBe("lost");
  });
});

function mark(directory: string): bigint {
  return BigInt(readFileSync(join(directory, "fences"), "utf8"));
}
