import { join } from "node:path";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Hold, holdMs, onceWaitMaxMs } from "../../src/cli/exec/hold.ts";
import { createLocks } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { builtCli, linesOf, until } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

describe("how long the lock is kept", () => {
  test("after a success for nine tenths of the period, so that the next start finds it free", () => {
    expect(holdMs({ oncePerMs: 3_600_000, minHoldMs: 0 }, true)).toBe(3_240_000);
  });

  test("after a failure only as long as --min-hold says", () => {
    expect(holdMs({ oncePerMs: 3_600_000, minHoldMs: 0 }, false)).toBe(0);
    expect(holdMs({ oncePerMs: 3_600_000, minHoldMs: 500 }, false)).toBe(500);
    expect(holdMs({ oncePerMs: undefined, minHoldMs: 500 }, true)).toBe(500);
    expect(holdMs({ oncePerMs: 1_000, minHoldMs: 2_000 }, true)).toBe(2_000);
  });

  test("longer than any start of the same period may wait", () => {
    for (const oncePerMs of [1_000, 60_000, 86_400_000]) {
      const kept = holdMs({ oncePerMs, minHoldMs: 0 }, true);
      expect(kept).toBeGreaterThan(onceWaitMaxMs(oncePerMs));
    }
  });

  test("a loss of the lease ends the wait", async () => {
    const locks = createLocks(memory());
    const lease = await locks.acquire("r", { ttl: 50 });
    await new Hold().wait(lease, performance.now() + 600_000);
    expect(lease.state).toBe("lost");
    await locks.close();
  });

  test("a hold that was ended before waits for nothing", async () => {
    const locks = createLocks(memory());
    const lease = await locks.acquire("r");
    const hold = new Hold();
    hold.end();
    await hold.wait(lease, performance.now() + 600_000);
    expect(lease.state).toBe("held");
    await locks.close();
  });
});

describe("exec --once-per", () => {
  test("keeps the lock after a success, and a second start runs nothing", async () => {
    const folder = cli.folder();
    const [store, file] = [`embedded:${folder}`, join(folder, "runs")];
    const args = ["exec", "r", "--store", store, "--once-per", "1h", "--debug"];
    const first = cli.start([...args, "--", "sh", "-c", `echo ran >> ${file}`]);
    await until("it keeps the lock", () => first.stderr().includes("keeping the lock for 53m5"));
    const second = await cli.run([...args, "--wait", "0", "--", "sh", "-c", `echo ran >> ${file}`]);
    expect(second.code).toBe(75);
    process.kill(first.pid, "SIGTERM");
    // The command has succeeded, and its exit code says so.
    expect((await first.ended).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("ran\n");
    const locks = createLocks(embedded(folder));
    expect((await locks.inspect("r")).state).toBe("free");
    await locks.close();
  });

  test("gives the lock back at once after a failure, and ends with its exit code", async () => {
    const store = `embedded:${cli.folder()}`;
    const args = ["exec", "r", "--store", store, "--once-per", "1h", "--"];
    expect((await cli.run([...args, "sh", "-c", "exit 3"])).code).toBe(3);
    expect((await cli.run(["exec", "r", "--store", store, "--wait", "0", "--", "true"])).code).toBe(
      0,
    );
  });

  test("gives the lock back at once if a signal ended the command", async () => {
    const folder = cli.folder();
    const file = join(folder, "ready");
    const script = `trap 'exit 0' TERM; echo >> ${file}; while :; do sleep 0.02; done`;
    const args = ["exec", "r", "--store", `embedded:${folder}`, "--once-per", "1h", "--"];
    const { pid, ended } = cli.start([...args, "sh", "-c", script]);
    await linesOf(file, 1);
    process.kill(pid, "SIGTERM");
    expect((await ended).code).toBe(0);
  });

  test("warns if the lock is lost after the command, whose exit code stays", async () => {
    const store = `embedded:${cli.folder()}`;
    const args = ["exec", "r", "--store", store, "--ttl", "1s", "--once-per", "1h", "--debug"];
    const keeping = cli.start([...args, "--", "true"]);
    await until("it keeps the lock", () => keeping.stderr().includes("keeping the lock"));
    await cli.run(["break", "r", "--yes", "--store", store]);
    const end = await keeping.ended;
    expect(end.code).toBe(0);
    expect(end.stderr).toContain("the lock was lost after the command had ended");
  });

  test("reports a loss while the command ran, although it ended with 0", async () => {
    const store = `embedded:${cli.folder()}`;
    const inner = `node ${cli.program} break r --yes --store ${store}`;
    const args = ["exec", "r", "--store", store, "--ttl", "30s", "--once-per", "1h", "--"];
    const { code, stderr } = await cli.run([...args, "sh", "-c", inner]);
    expect(code).toBe(76);
    expect(stderr).toContain("the lease was lost while the command ran (taken)");
  });

  test("refuses a wait after which the command would run twice in the period", async () => {
    const args = ["exec", "r", "--once-per", "10s", "--wait", "6s", "--", "echo", "ran"];
    const { code, stdout, stderr } = await cli.run(args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).toContain("with --once-per 10s, --wait can be 5.0s at most");
  });
});

test("exec --min-hold keeps the lock for that long, whatever the exit code", async () => {
  const store = `embedded:${cli.folder()}`;
  const args = ["exec", "r", "--store", store, "--min-hold", "1h", "--debug", "--"];
  const keeping = cli.start([...args, "sh", "-c", "exit 3"]);
  await until("it keeps it", () => keeping.stderr().includes("keeping the lock for 59m5"));
  process.kill(keeping.pid, "SIGINT");
  expect((await keeping.ended).code).toBe(3);
  const short = ["exec", "r", "--store", store, "--min-hold", "300ms", "--json", "--", "true"];
  const done = await cli.run(short);
  expect(done.code).toBe(0);
  expect((JSON.parse(done.stderr) as { heldMs: number }).heldMs).toBeGreaterThanOrEqual(300);
});
