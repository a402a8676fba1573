import { describe, expect, test } from "vitest";
import type { Lease, Locks } from "../../src/index.ts";
import { operationsIn } from "../support/sent-operations.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, openLocks, shareRedis, watchConnection } from "../support/redis-harness.ts";

/** Leases that are renewed together share one request, and each has its own outcome. */

const bench = shareRedis(3);
const options = { ttl: "20s", renew: "100ms" } as const;

async function take(locks: Locks, names: readonly string[]): Promise<Lease[]> {
  const leases = await Promise.all(names.map((name) => locks.acquire(name, options)));
  for (const name of names) await bench.valuesEverywhere(name);
  return leases;
}

async function giveBack(leases: readonly Lease[]): Promise<void> {
  await Promise.all(leases.map((lease) => lease.release()));
  await bench.untilFree();
}

/** Resolves when each of them was renewed again. Throws if that takes too long. */
async function renewedAgain(locks: Locks, names: readonly string[]): Promise<void> {
  const renewed = collect(locks, "renewed");
  await eventually(() => {
    const seen = new Set(renewed.map(({ resources }) => resources[0] ?? ""));
    return names.every((name) => seen.has(name));
  });
}

function namesOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `order:${index}`);
}

describe.each([{ fencing: true }, { fencing: false }])("with fencing $fencing", ({ fencing }) => {
  const renews = (command: readonly string[]): boolean =>
    operationsIn(command)?.kinds.every((kind) => kind === "touch") === true;

  test("a hundred leases are extended on every node, by a few commands", async () => {
    const connections = (await bench.connectAll()).map((client) => watchConnection(client));
    const locks = openLocks(connections, { fencing });
    const names = namesOf(100);
    const leases = await take(locks, names);
    for (const server of bench.servers) {
      for (const name of names) await server.command("PEXPIRE", name, "9000");
    }
    const sent = (): number[] => {
      return connections.map(({ sent: all }) => all.filter(renews).length);
    };
    const before = sent();
    await renewedAgain(locks, names);
    await eventually(async () => {
      for (const server of bench.servers) {
        for (const name of names) expect(await server.command("PTTL", name)).toBeGreaterThan(9_000);
      }
    });
    // At most 64 leases go in one command, so each round of renewals needs two.
    expect(sent().every((count, index) => count >= (before[index] ?? 0) + 2)).toBe(true);
    const keysOf = ([, , count]: readonly string[]): number => Number(count);
    for (const { sent: all } of connections) {
      const renewals = all.filter(renews);
      expect(Math.max(...renewals.map(keysOf))).toBeGreaterThan(30);
    }
    expect(leases.map(({ state }) => state)).toEqual(names.map(() => "held"));
    await giveBack(leases);
  });

  test("a lease that was taken is lost, and the others are renewed", async () => {
    const locks = await bench.locks(3, { fencing });
    const lost = collect(locks, "lost");
    const leases = await take(locks, ["a", "b", "c"]);
    for (const server of bench.servers) await server.command("SET", "b", "another", "PX", "20000");
    await eventually(() => leases[1]?.state === "lost");
    expect(lost.map(({ resources, reason }) => [resources, reason])).toEqual([[["b"], "taken"]]);
    await renewedAgain(locks, ["a", "c"]);
    expect([leases[0]?.state, leases[2]?.state]).toEqual(["held", "held"]);
    expect(await bench.values("b")).toEqual(["another", "another", "another"]);
    await bench.freeByForeigner([0, 1, 2], "b");
    await giveBack(leases);
  });

  test("a lease that a minority lacks is renewed by the other nodes", async () => {
    const locks = await bench.locks(3, { fencing });
    const leases = await take(locks, ["a", "b"]);
    await bench.server(2).command("DEL", "a");
    await renewedAgain(locks, ["a", "b"]);
    expect(leases.map(({ state }) => state)).toEqual(["held", "held"]);
    // An extension never creates a key.
    expect(await bench.server(2).command("EXISTS", "a")).toBe(0);
    await giveBack(leases);
  });

  test("a lease that the servers refuse does not make the others fail", async () => {
    const rights = ["on", "nopass", "+@all", "~*", "&*"];
    for (const server of bench.servers) await server.command("ACL", "SETUSER", "worker", ...rights);
    const clients = await bench.connectAll(3, { username: "worker", password: "" });
    const locks = openLocks(clients, { fencing });
    const leases = await take(locks, ["allowed:1", "denied", "allowed:2"]);
    const allowed = ["resetkeys", "~holdfast:*", "~allowed:*"];
    const restrict = async (keys: readonly string[]): Promise<void> => {
      for (const server of bench.servers) await server.command("ACL", "SETUSER", "worker", ...keys);
    };
    const doubts = collect(locks, "doubtful");
    await restrict(allowed);
    await eventually(() => leases[1]?.state === "doubtful");
    await renewedAgain(locks, ["allowed:1", "allowed:2"]);
    expect(new Set(doubts.map(({ resources }) => resources[0]))).toEqual(new Set(["denied"]));
    expect(String(doubts[0]?.cause)).toContain("extend");
    await restrict(["~*"]);
    await eventually(() => leases[1]?.state === "held");
    await giveBack(leases);
  });

  test("all leases are doubtful without a quorum, and held again when it is back", async () => {
    const locks = await bench.locks(3, { fencing, nodeTimeout: 100 });
    const leases = await take(locks, ["a", "b"]);
    await renewedAgain(locks, ["a", "b"]);
    const doubts = collect(locks, "doubtful");
    bench.freeze(1, 2);
    await eventually(() => leases.every(({ state }) => state === "doubtful"));
    expect(doubts[0]?.cause).toMatchObject({
      code: "QUORUM",
      votes: [{ vote: "granted" }, { vote: "unknown" }, { vote: "unknown" }],
    });
    bench.thaw(1, 2);
    await eventually(() => leases.every(({ state }) => state === "held"));
    await giveBack(leases);
  });
});

test("a node with a smaller fence is raised to the lease's fence, and counted afterwards", async () => {
  const locks = await bench.locks(3);
  const leases = await take(locks, ["a", "b"]);
  const [value] = await bench.values("a");
  const older = String(value).replace(/\d+$/, (fence) => String(BigInt(fence) - 1n));
  for (const index of [1, 2]) await bench.server(index).command("SET", "a", older, "PX", "20000");
  // Two of three nodes are behind: without them there is no quorum.
  await renewedAgain(locks, ["a", "b"]);
  expect(await bench.values("a")).toEqual([value, value, value]);
  expect(leases.map(({ state }) => state)).toEqual(["held", "held"]);
  await giveBack(leases);
});

test("a key of the same owner with a greater fence does not count for the lease", async () => {
  const locks = await bench.locks(3);
  const lost = collect(locks, "lost");
  const leases = await take(locks, ["a", "b"]);
  const [value] = await bench.values("a");
  const newer = String(value).replace(/\d+$/, (fence) => String(BigInt(fence) + 1n));
  for (const index of [0, 1, 2]) {
    await bench.server(index).command("SET", "a", newer, "PX", "20000");
  }
  await eventually(() => leases[0]?.state === "lost");
  expect(lost.map(({ resources, reason }) => [resources, reason])).toEqual([[["a"], "taken"]]);
  await renewedAgain(locks, ["b"]);
  await bench.freeByForeigner([0, 1, 2], "a");
  await giveBack(leases);
});
