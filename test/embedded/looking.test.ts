import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocks, UnsupportedError } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { Workshop } from "./processes.ts";

const root = mkdtempSync(join(tmpdir(), "holdfast-looking-"));
let workshop: Workshop;
beforeAll(() => {
  workshop = new Workshop();
});
afterAll(async () => {
  await workshop.close();
  rmSync(root, { recursive: true, force: true });
});
watchLeaks();

/** Returns each path below `folder` with its owner, mode, time of change and content. */
function snapshot(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((name) => {
      const path = join(folder, name);
      const status = lstatSync(path);
      const owner = [name, status.uid, status.gid, status.mode];
      // LMDB writes into its lock file which processes use the database.
      if (!status.isFile() || name.endsWith("-lock")) return owner.join(" ");
      return [...owner, status.mtimeMs, readFileSync(path, "latin1")].join(" ");
    });
}

async function lookEverywhere(directory: string): Promise<readonly unknown[]> {
  const locks = createLocks(embedded(directory));
  const seen = [
    (await locks.inspect("r")).state,
    (await locks.list()).length,
    (await locks.nodes()).map(({ lastFault }) => lastFault),
    (await locks.doctor()).map(({ code }) => code).filter((code) => code === "directory-unused"),
  ];
  await locks.close();
  return seen;
}

describe("looking at a directory", () => {
  test("that is missing does not create it", async () => {
    const directory = join(root, "missing", "locks");
    expect(await lookEverywhere(directory)).toEqual(["free", 0, [undefined], ["directory-unused"]]);
    expect(existsSync(join(root, "missing"))).toBe(false);
  });

  test("in which nothing was locked creates no file in it", async () => {
    const directory = mkdtempSync(join(root, "empty-"));
    expect(await lookEverywhere(directory)).toEqual(["free", 0, [undefined], ["directory-unused"]]);
    expect(readdirSync(directory)).toEqual([]);
  });

  test("in which something is locked shows it, and changes nothing", async () => {
    const directory = mkdtempSync(join(root, "used-"));
    const locks = createLocks(embedded(directory));
    await locks.acquire("r", { ttl: "30s" });
    const before = snapshot(directory);
    expect(await lookEverywhere(directory)).toEqual(["held", 1, [undefined], []]);
    expect(snapshot(directory)).toEqual(before);
    await locks.close();
  });

  test("sees a lock that is taken after the first look", async () => {
    const directory = join(root, "later");
    const watcher = createLocks(embedded(directory));
    expect(await watcher.list()).toEqual([]);
    const locks = createLocks(embedded(directory));
    await locks.acquire("r", { ttl: "30s" });
    expect(await watcher.list()).toMatchObject([{ resource: "r", state: "held" }]);
    // The one that only looked can also lock.
    await (await watcher.acquire("other", { ttl: "1s" })).release();
    await Promise.all([locks.close(), watcher.close()]);
  });
});

describe("a worker thread", () => {
  test("is refused in both of two processes with one worker each", async () => {
    const directory = join(root, "threads");
    const source = (path: string): string =>
      JSON.stringify(join(workshop.folder, "with", "dist", path));
    const inWorker = `
      const { parentPort } = require("node:worker_threads");
      (async () => {
        const { createLocks } = await import(${source("index.js")});
        const { embedded } = await import(${source("stores/embedded/index.js")});
        const locks = createLocks(embedded(${JSON.stringify(directory)}));
        const outcomes = [];
        for (const call of [() => locks.acquire("r", { wait: 0 }), () => locks.list()]) {
          outcomes.push(await call().then(() => "done", ({ code, message }) => code + " " + message));
        }
        await locks.close();
        parentPort.postMessage(outcomes);
      })();`;
    const main = `
      const { Worker } = require("node:worker_threads");
      const worker = new Worker(${JSON.stringify(inWorker)}, { eval: true });
      worker.on("message", (outcomes) => console.log(JSON.stringify(outcomes)));
      worker.on("error", (error) => { console.error(error); process.exitCode = 1; });`;
    const run = async (): Promise<unknown> => {
      const stdio = ["ignore", "pipe", "inherit"] as const;
      const child = spawn(process.execPath, ["-e", main], { stdio: [...stdio] });
      let output = "";
      child.stdout?.on("data", (data) => (output += String(data)));
      await once(child, "close");
      return JSON.parse(output);
    };
    const { code } = new UnsupportedError("");
    const refusal = expect.stringMatching(`^${code} .*main thread.*child processes`) as unknown;
    expect(await Promise.all([run(), run()])).toEqual([
      [refusal, refusal],
      [refusal, refusal],
    ]);
    expect(existsSync(directory)).toBe(false);
  });
});
