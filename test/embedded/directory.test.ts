import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readlinkSync, rmSync, statfsSync, symlinkSync } from "node:fs";
import { mkdtempSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { refuseShared } from "../../src/stores/embedded/directory.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { loadLmdb } from "../../src/stores/embedded/lmdb-package.ts";
import { thisMachine } from "../../src/stores/embedded/machine.ts";
import { manualRuntime } from "../../src/testing/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { isAvailable } from "../support/requirements.ts";
import { machineWith, newDirectory, Port } from "./store-port.ts";

watchLeaks();

const bootFolder = `boot-${thisMachine().bootId ?? "unknown"}`;

describe("the directory", () => {
  test("is created with its parents if it is missing", async () => {
    const directory = join(newDirectory(), "deep", "below");
    await new Port(directory).take("job");
    expect(readdirSync(directory)).toContain("fences");
  });

  test("has fences that follow the clock, and grow if the clock is set back", async () => {
    const { runtime, clock } = manualRuntime();
    const port = new Port(newDirectory(), thisMachine(), runtime);
    const first = (await port.take("a")).fence;
    expect(first).toBe(BigInt(clock.wallMs()) * 1_000n);
    expect((await port.take("b")).fence).toBe(first + 1n);
    clock.stepWall(3_600_000);
    const later = (await port.take("c")).fence;
    expect(later).toBe(first + 3_600_000_000n);
    clock.stepWall(-7_200_000);
    expect((await port.take("d")).fence).toBe(later + 1n);
  });

  test("is the same directory for every path that leads to it", async () => {
    const directory = newDirectory();
    mkdirSync(directory);
    const link = `${directory}-link`;
    symlinkSync(directory, link, "dir");
    const [one, other] = [new Port(directory), new Port(join(link, "..", "locks-link"))];
    await one.take("job");
    expect((await other.attempt("job")).kind).toBe("held");
  });

  test("stays the same when the working directory changes", async () => {
    const directory = newDirectory();
    mkdirSync(directory);
    const home = process.cwd();
    onTestFinished(() => process.chdir(home));
    process.chdir(dirname(directory));
    const locks = createLocks(embedded("locks"));
    onTestFinished(() => locks.close());
    process.chdir(home);
    await locks.acquire("job");
    expect((await new Port(directory).attempt("job")).kind).toBe("held");
  });

  test("is closed with its last user, and not before", async () => {
    const directory = newDirectory();
    const ports = [new Port(directory), new Port(directory), new Port(directory)];
    const grants = await Promise.all(ports.map((port, index) => port.take(`job-${index}`)));
    await ports[0]?.store.close();
    const reopened = new Port(directory);
    const [, second] = grants;
    expect((await reopened.attempt("job-0")).kind).toBe("held");
    await ports[2]?.store.close();
    if (second !== undefined) {
      expect(await ports[1]?.store.release(second)).toEqual({ released: true });
    }
    await Promise.all([ports[1]?.store.close(), reopened.store.close(), reopened.store.close()]);
    expect(openFilesIn(directory)).toEqual([]);
    // Closes and opens it at the same time.
    for (let turn = 0; turn < 20; turn += 1) {
      const [leaving, coming] = [new Port(directory), new Port(directory)];
      await leaving.attempt("job-9");
      await Promise.all([leaving.store.close(), coming.attempt("job-9"), coming.store.close()]);
    }
    expect(openFilesIn(directory)).toEqual([]);
  });

  test("that is deleted loses its locks, and is created again", async () => {
    const directory = newDirectory();
    const port = new Port(directory);
    const grants = [await port.take("a"), await port.take("b"), await port.take("c")] as const;
    rmSync(directory, { recursive: true });
    expect(await port.store.prove(grants[0])).toEqual({ kind: "gone" });
    const rival = new Port(directory);
    await rival.take("b");
    expect(await port.store.extend(grants[1], 1_000)).toEqual({ kind: "gone" });
    expect(await port.store.release(grants[2])).toEqual({ released: false, reason: "taken" });
    expect((await port.attempt("b")).kind).toBe("held");
    await Promise.all([port.store.close(), rival.store.close()]);
    expect(openFilesIn(directory)).toEqual([]);
  });

  test.each([1, 2, 3])("keeps a lock if LMDB would begin %i commits before it", async (back) => {
    const directory = newDirectory();
    const port = new Port(directory);
    for (let count = 0; count < 5; count += 1) await port.take(`before ${count}`);
    const grant = await port.take("job");
    // In another process, because closing the file here would drop LMDB's locks on it.
    const setBack = `
      const fs = require("node:fs");
      const file = fs.openSync(process.argv[1], "r+");
      const bytes = Buffer.alloc(8);
      fs.readSync(file, bytes, 0, 8, 8);
      bytes.writeBigUInt64LE(bytes.readBigUInt64LE() - ${back}n);
      fs.writeSync(file, bytes, 0, 8, 8);`;
    const lockFile = join(directory, bootFolder, "locks.mdb-lock");
    const { status } = spawnSync(process.execPath, ["-e", setBack, lockFile]);
    expect(status).toBe(0);
    expect(await port.store.prove(grant)).toEqual({ kind: "proven" });
    expect((await port.attempt("job")).kind).toBe("held");
    expect((await port.take("after")).fence).toBeGreaterThan(grant.fence);
    expect(await port.store.release(grant)).toEqual({ released: true });
  });

  test("deletes expired names that are not used again", async () => {
    const directory = newDirectory();
    const { runtime, clock } = manualRuntime();
    const port = new Port(directory, thisMachine(), runtime);
    for (let count = 0; count < 999; count += 1) await port.take(`name ${count}`, 1_000);
    clock.pause(1_000);
    const kept = await port.take("kept");
    for (let count = 0; count < 2; count += 1) await port.take(`later ${count}`);
    await port.store.close();
    expect(await entriesIn(directory)).toBe(3);
    const fresh = new Port(directory, thisMachine(), runtime);
    expect(await fresh.store.prove(kept)).toEqual({ kind: "proven" });
  });

  const shm = "/dev/shm";
  const hasFolder = process.platform === "linux" && readdirSync("/dev").includes("shm");
  const hasMemory = hasFolder && statfsSync(shm).type === 0x01021994;
  test.skipIf(!isAvailable("a file system in memory at /dev/shm", hasMemory))(
    "works in memory, with a warning that fences do not survive a reboot",
    async () => {
      const directory = mkdtempSync(join(shm, "holdfast-"));
      onTestFinished(() => rmSync(directory, { recursive: true }));
      const port = new Port(directory);
      await port.take("a");
      await port.take("b");
      expect(port.warnings.map(({ why }) => why)).toEqual([expect.stringContaining("reboot")]);
      expect(await port.store.doctor()).toMatchObject([{ code: "fences-in-memory" }]);
    },
  );
});

test("the doctor reports what the system does not reveal", async () => {
  const place = { ...thisMachine().self, place: "" };
  const machine = machineWith({ bootId: undefined, self: place });
  const findings = await new Port(newDirectory(), machine).store.doctor();
  expect(findings.map(({ code }) => code)).toEqual([
    "directory-unused",
    "crashes-unseen",
    "boots-unseen",
  ]);
});

describe("bad input", () => {
  test.each([undefined, null, 5, "", "a\0b", {}])("directory %j is refused at once", (bad) => {
    expect(() => embedded(bad as string)).toThrow(expect.objectContaining({ option: "directory" }));
  });

  test("unknown and impossible options are refused at once", () => {
    expect(() => embedded("x", { maxTTL: 5 } as object)).toThrow("maxTTL");
    expect(() => embedded("x", { maxTtl: 5 })).toThrow("maxTtl");
    expect(() => embedded("x", { maxTtl: "48h" })).toThrow("maxTtl");
  });

  test("a file is refused as a directory, and so is a path below it", async () => {
    const directory = newDirectory();
    writeFileSync(directory, "");
    for (const path of [directory, join(directory, "below")]) {
      const fault = await new Port(path).fault();
      expect(fault).toMatchObject({ code: "INVALID_OPTION", retryable: false });
      await expect(new Port(path).store.inspect("job")).rejects.toThrow("a directory");
      const [status] = await new Port(path).store.nodes();
      expect(status?.lastFault).toMatchObject({ code: "INVALID_OPTION" });
    }
    rmSync(directory);
  });

  test("a store whose directory was unusable works once the directory is repaired", async () => {
    const directory = newDirectory();
    writeFileSync(directory, "");
    const port = new Port(directory);
    await port.fault();
    expect(await port.store.doctor()).toMatchObject([{ code: "directory-unusable" }]);
    rmSync(directory);
    await port.take("job");
    expect(await port.store.nodes()).toMatchObject([{ lastFault: undefined }]);
    expect(await port.store.doctor()).toEqual([]);
  });

  const wrecks: Readonly<Record<string, (path: string) => void>> = {
    "that is something else": (path) => writeFileSync(path, "not a database".repeat(1_000)),
    "that is empty": (path) => writeFileSync(path, ""),
    "cut off in its head": (path) => truncateSync(path, 4_096),
    "cut off behind its head": (path) => truncateSync(path, 8_192),
    "of a format to come": (path) => {
      const bytes = readFileSync(path);
      bytes[28] = 99;
      writeFileSync(path, bytes);
    },
  };

  test.each(Object.entries(wrecks))(
    "a database %s is reported as damaged, with a remedy",
    async (_what, wreck) => {
      const directory = newDirectory();
      const before = new Port(directory);
      const { fence } = await before.take("job");
      await before.store.close();
      wreck(join(directory, bootFolder, "locks.mdb"));
      const fault = await new Port(directory).fault();
      expect(fault.message).toMatch(/locks\.mdb is damaged .*keep the file fences/);
      expect(fault).toMatchObject({ code: "STORE", retryable: false });
      expect(openFilesIn(directory)).toEqual([]);
      rmSync(join(directory, bootFolder), { recursive: true });
      expect((await new Port(directory).take("job")).fence).toBeGreaterThan(fence + 60_000_000n);
    },
  );

  test("a damaged file of fences is never read as a number", async () => {
    const directory = newDirectory();
    mkdirSync(directory);
    writeFileSync(join(directory, "fences"), "");
    const fault = await new Port(directory).fault();
    expect(fault.message).toContain("fences is damaged");
    expect(readdirSync(directory)).toEqual(["fences"]);
    writeFileSync(join(directory, "fences"), "9000000000000000\n");
    expect((await new Port(directory).take("job")).fence).toBe(9_000_000_000_000_001n);
  });

  test.each([
    [0x6969, "NFS"],
    [0xff534d42, "CIFS"],
    [0xff534d42 | 0, "CIFS"],
    [0x65735546, "FUSE"],
  ])("a file system of type %i is refused as %s", (type, name) => {
    expect(() => refuseShared("x", type)).toThrow(name);
    expect(() => refuseShared("x", 0xef53)).not.toThrow();
  });

  test("a closed store rejects with ClosedError", async () => {
    const port = new Port(newDirectory());
    await port.store.close();
    expect(await port.fault()).toMatchObject({ code: "CLOSED", retryable: false });
  });
});

async function entriesIn(directory: string): Promise<number> {
  const path = join(directory, bootFolder, "locks.mdb");
  const database = loadLmdb().open({ path, encoding: "string", noSync: true, mapSize: 2 ** 28 });
  let count = 0;
  database.transactionSync(() => {
    count = [...database.getRange({ start: "r/", end: "r0", limit: 10_000 })].length;
  });
  await database.close();
  return count;
}

function openFilesIn(directory: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`);
      return path.startsWith(directory) ? [path] : [];
    } catch {
      return [];
    }
  });
}
