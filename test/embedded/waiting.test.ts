import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Grant } from "../../src/core/store.ts";
import type { Waiting } from "../../src/core/store.ts";
import { watchLeaks } from "../support/leaks.ts";
import { Workshop } from "./processes.ts";
import { newDirectory, Port } from "./store-port.ts";

watchLeaks();

const workshop = new Workshop();
afterAll(() => workshop.close());

/** So long that no event in these tests can be explained by its end. */
const hour = String(3_600_000);

/** A waiter like that of the core, except that it makes an attempt only when the test says so. */
class Waiter {
  readonly #port: Port;
  readonly #resources: readonly string[];
  readonly #waiting: Waiting;
  /** Number of notifications since the last attempt. */
  notified = 0;
  #onNotified: (() => void) | undefined;

  constructor(port: Port, ...resources: readonly string[]) {
    this.#port = port;
    this.#resources = resources;
    this.#waiting = port.store.waiting(resources);
    this.#waiting.listen(() => {
      this.notified += 1;
      this.#onNotified?.();
    });
  }

  async attempt(): Promise<Grant | undefined> {
    const outcome = await this.#waiting.attempt(this.#port.request(this.#resources));
    if (outcome.kind === "failed") throw outcome.error;
    return outcome.kind === "granted" ? outcome.grant : undefined;
  }

  /** Resolves when a notification has come since the last attempt, and makes an attempt. */
  async whenNotified(): Promise<Grant | undefined> {
    if (this.notified === 0) await new Promise<void>((resolve) => (this.#onNotified = resolve));
    this.notified = 0;
    return await this.attempt();
  }

  async queued(): Promise<this> {
    expect(await this.attempt()).toBeUndefined();
    return this;
  }

  leave(): Promise<void> {
    return this.#waiting.leave();
  }
}

describe("a waiter is notified", () => {
  test("when another process releases the lock", async () => {
    const directory = workshop.newDirectory();
    const worker = workshop.start([directory, "hold", "job", hour]);
    const fence = await worker.held();
    const waiter = await new Waiter(new Port(directory), "job").queued();
    worker.say("release");
    expect((await waiter.whenNotified())?.fence).toBeGreaterThan(fence);
    await waiter.leave();
    await worker.kill();
  });

  test("when the process that holds the lock is killed", async () => {
    const directory = workshop.newDirectory();
    const worker = workshop.start([directory, "hold", "job", hour]);
    const fence = await worker.held();
    const waiter = await new Waiter(new Port(directory), "job").queued();
    await worker.kill();
    expect((await waiter.whenNotified())?.fence).toBeGreaterThan(fence);
    await waiter.leave();
  });

  test("when the lease of a stopped holder expires", async () => {
    const directory = workshop.newDirectory();
    const worker = workshop.start([directory, "hold", "job", "300"]);
    const fence = await worker.held();
    const waiter = await new Waiter(new Port(directory), "job").queued();
    worker.signal("SIGSTOP");
    expect((await waiter.whenNotified())?.fence).toBeGreaterThan(fence);
    await waiter.leave();
    await worker.kill();
  });

  test("when the lock is released between its attempt and its listening", async () => {
    const port = new Port(newDirectory());
    const grant = await port.take("job");
    const waiting = port.store.waiting(["job"]);
    expect((await waiting.attempt(port.request("job"))).kind).toBe("held");
    await port.store.release(grant);
    await new Promise<void>((resolve) => waiting.listen(resolve));
    expect((await waiting.attempt(port.request("job"))).kind).toBe("granted");
    await waiting.leave();
  });
});

describe("of several waiters", () => {
  test("the first is notified, and the next when that one has released", async () => {
    const directory = newDirectory();
    const holder = new Port(directory);
    let grant: Grant | undefined = await holder.take("job");
    const waiters: Waiter[] = [];
    for (let count = 0; count < 5; count += 1) {
      waiters.push(await new Waiter(new Port(directory), "job").queued());
    }
    for (const waiter of waiters) {
      if (grant === undefined) throw new Error("the one before had nothing to give back");
      await holder.store.release(grant);
      grant = await waiter.whenNotified();
      await waiter.leave();
      // A waiter that had its turn is not notified again, and the others are not notified yet.
      expect(waiters.map(({ notified }) => notified)).toEqual([0, 0, 0, 0, 0]);
    }
  });

  test("one that needs a second resource does not block a waiter for one of them", async () => {
    const directory = newDirectory();
    const holder = new Port(directory);
    const [both, other] = [await holder.take("a"), await holder.take("b")];
    const greedy = await new Waiter(new Port(directory), "a", "b").queued();
    const modest = await new Waiter(new Port(directory), "a").queued();
    await holder.store.release(both);
    const grant = await modest.whenNotified();
    expect(greedy.notified).toBe(0);
    await modest.leave();
    await holder.store.release(other);
    expect(await greedy.attempt()).toBeUndefined();
    if (grant === undefined) throw new Error("it was notified, and did not get it");
    await holder.store.release(grant);
    expect(await greedy.whenNotified()).toMatchObject({ resources: ["a", "b"] });
    await greedy.leave();
  });

  test("one that was notified and leaves passes the notification on", async () => {
    const directory = newDirectory();
    const holder = new Port(directory);
    const grant = await holder.take("job");
    const first = await new Waiter(new Port(directory), "job").queued();
    const second = await new Waiter(new Port(directory), "job").queued();
    await holder.store.release(grant);
    await first.leave();
    expect(await second.whenNotified()).toBeDefined();
    await second.leave();
  });

  test("one whose process is dead is skipped", async () => {
    const directory = workshop.newDirectory();
    const holder = new Port(directory);
    const grant = await holder.take("job");
    const worker = workshop.start([directory, "queue", "job"]);
    expect(await worker.line()).toBe("queued held");
    const waiter = await new Waiter(new Port(directory), "job").queued();
    await worker.kill();
    await holder.store.release(grant);
    expect(await waiter.whenNotified()).toBeDefined();
    await waiter.leave();
  });

  test("any number in one process share one mailbox", async () => {
    const directory = newDirectory();
    const port = new Port(directory);
    const grants = await Promise.all(["a", "b", "c"].map((name) => port.take(name)));
    const waiters = ["a", "b", "c"].map((name) => new Waiter(port, name));
    await Promise.all(waiters.map((waiter) => waiter.queued()));
    expect(mailboxes(directory)).toHaveLength(1);
    await Promise.all(grants.map((grant) => port.store.release(grant)));
    for (const waiter of waiters) expect(await waiter.whenNotified()).toBeDefined();
    await Promise.all(waiters.map((waiter) => waiter.leave()));
    await port.store.close();
    expect(mailboxes(directory)).toEqual([]);
  });
});

describe("what a wait leaves behind", () => {
  test("the mailbox of a killed process is removed by the next process", async () => {
    const directory = workshop.newDirectory();
    const port = new Port(directory);
    const grant = await port.take("job");
    const worker = workshop.start([directory, "queue", "job"]);
    await worker.line();
    const [abandoned] = mailboxes(directory);
    await worker.kill();
    const waiter = await new Waiter(port, "job").queued();
    expect(mailboxes(directory)).toHaveLength(1);
    expect(mailboxes(directory)).not.toContain(abandoned);
    await waiter.leave();
    await port.store.release(grant);
  });

  test("a waiter can go on after its directory was deleted", async () => {
    const directory = newDirectory();
    const port = new Port(directory);
    await port.take("job");
    const waiter = await new Waiter(port, "job").queued();
    rmSync(directory, { recursive: true });
    // The first attempt finds the directory gone, and the next one creates it again.
    await expect(waiter.attempt()).rejects.toThrow("deleted or replaced");
    expect(await waiter.attempt()).toBeDefined();
    await waiter.leave();
    expect(existsSync(directory)).toBe(true);
  });
});

function mailboxes(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith("boot-"))
    .map((name) => join(directory, name, "mail"))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder));
}

describe("an inspection", () => {
  test("counts the waiters, and has the time left in whole milliseconds", async () => {
    const port = new Port(newDirectory());
    const grant = await port.take("job");
    const [one, two] = [new Waiter(port, "job"), new Waiter(port, "job", "other")];
    await one.queued();
    await two.queued();
    const seen = await port.store.inspect("job");
    expect(seen).toMatchObject({ state: "held", waiters: 2 });
    expect(Number.isInteger(seen.remainingMs)).toBe(true);
    expect(await port.store.list()).toMatchObject([{ resource: "job", waiters: 2 }]);
    expect(await port.store.inspect("other")).toMatchObject({ state: "free", waiters: 1 });
    await one.leave();
    await two.leave();
    expect(await port.store.inspect("job")).toMatchObject({ waiters: 0 });
    await port.store.release(grant);
    await port.store.close();
  });
});
