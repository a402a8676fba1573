import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { compileClockLibrary } from "../../faults/clock-library.ts";
import { NodeServer } from "../../faults/node-server.ts";
import type { Locks } from "../../src/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, connect, openLocks } from "../support/redis-harness.ts";
import { isAvailable } from "../support/requirements.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

const projectRoot = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "holdfast-steps-"));
const library = compileClockLibrary(projectRoot, folder);
const hasLibrary = isAvailable("gcc", library !== undefined);
const servers: NodeServer[] = [];
const key = "invoice:42";
const ttlMs = 12_000;
const nodeTimeoutMs = 2_000;
/**
 * Number of leases of each client before and after the step: several rounds with a long lease
 * each.
 */
const tenuresEach = 5;
/** Limit for a required event on a busy machine. */
const withinMs = 40_000;
/**
 * Longest overlap after a step. A holder detects the step at its next renewal, at most a third of
 * the TTL later, when the reply comes. With the delays of this machine it must stay below the TTL.
 */
const windowMs = ttlMs / 3 + nodeTimeoutMs + 1_000;

beforeAll(async () => {
  if (library === undefined) return;
  servers.push(
    ...(await Promise.all(
      [1, 2, 3, 4, 5].map((number) => NodeServer.start(join(folder, String(number)), library)),
    )),
  );
}, 60_000);
// With the clock set back, an old key would live for another minute.
beforeEach(async () => {
  for (const server of servers) {
    server.setClock(0);
    await server.command("DEL", key, "warm");
  }
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  rmSync(folder, { recursive: true, force: true });
});

/** A time during which a client could believe that it alone holds the resource. */
interface Tenure {
  readonly client: number;
  readonly fence: bigint;
  /** Moments at which the granted attempt began, and at which the lease was returned. */
  readonly askedMs: number;
  readonly fromMs: number;
  /** Moment at which the lease was released or reported lost. */
  untilMs: number;
}

/** Acquires the resource, holds it for a while with renewals, and releases it, again and again. */
async function contend(
  locks: Locks,
  client: number,
  tenures: Tenure[],
  state: { readonly running: boolean },
): Promise<void> {
  let askedMs = 0;
  locks.on("attempt", ({ outcome, elapsedMs }) => {
    if (outcome === "granted") askedMs = performance.now() - elapsedMs;
  });
  while (state.running) {
    const lease = await locks
      .acquire(key, { ttl: ttlMs, renew: true, wait: "1s" })
      .catch(() => undefined);
    if (lease === undefined) {
      await sleep(10);
      continue;
    }
    const fromMs = performance.now();
    const tenure: Tenure = { client, fence: lease.fence, askedMs, fromMs, untilMs: Infinity };
    tenures.push(tenure);
    const over = (): void => {
      tenure.untilMs = Math.min(tenure.untilMs, performance.now());
    };
    lease.signal.addEventListener("abort", over);
    // Some leases are short and some outlast a renewal, so that a step hits both kinds.
    const holdMs = client === 0 ? ttlMs / 3 + 500 : 20 * client;
    const endMs = fromMs + holdMs;
    while (lease.state !== "lost" && performance.now() < endMs) await sleep(5);
    over();
    await lease.release();
  }
}

function overlaps(tenures: readonly Tenure[]): { readonly ms: number; readonly fromMs: number }[] {
  return tenures.flatMap((one, index) =>
    tenures.slice(index + 1).flatMap((other) => {
      const fromMs = Math.max(one.fromMs, other.fromMs);
      const ms = Math.min(one.untilMs, other.untilMs) - fromMs;
      return ms > 0 ? [{ ms, fromMs }] : [];
    }),
  );
}

/** Expects a greater fence for each attempt that began after another lease was granted. */
function expectOrderedFences(tenures: readonly Tenure[]): void {
  for (const earlier of tenures) {
    for (const later of tenures) {
      if (later.askedMs > earlier.fromMs) expect(later.fence).toBeGreaterThan(earlier.fence);
    }
  }
  expect(new Set(tenures.map(({ fence }) => fence)).size).toBe(tenures.length);
}

const cases = [
  { stepMs: 60_000, stepped: [1] },
  { stepMs: -60_000, stepped: [1] },
  { stepMs: 60_000, stepped: [0, 3] },
  { stepMs: -60_000, stepped: [0, 3] },
];

const runCase = test.skipIf(!hasLibrary).each(cases);

runCase(
  "$stepMs ms on nodes $stepped of five",
  async ({ stepMs, stepped }) => {
    const options = { nodeTimeout: nodeTimeoutMs, maxTtl: ttlMs, admission: "strict" } as const;
    const managers = await Promise.all(
      [0, 1, 2, 3].map(async () => {
        const clients = await Promise.all(servers.map(({ port }) => connect(port)));
        return openLocks(clients, options, { ttl: ttlMs });
      }),
    );
    const jumps = managers.map((locks) => collect(locks, "clock-jump"));
    // Waits until every node is admitted, and each client knows every node's clock.
    for (const locks of managers) {
      for (let round = 0; round < 3; round += 1) {
        const lease = await locks.acquire("warm", { wait: "40s" });
        await eventually(async () => {
          await lease.extend();
          const { nodes } = await locks.inspect("warm");
          const missing = nodes.filter(({ vote }) => vote !== "held");
          if (missing.length > 0) throw new Error(JSON.stringify(nodes));
        }, withinMs);
        await lease.release();
      }
    }
    const state = { running: true };
    onTestFinished(() => {
      state.running = false;
    });
    const tenures: Tenure[] = [];
    const work = managers.map((locks, client) => contend(locks, client, tenures, state));
    await eventually(() => tenures.length >= tenuresEach, withinMs);

    const steppedAtMs = performance.now();
    for (const index of stepped) servers[index]?.setClock(stepMs);
    const names = stepped.map((index) => `node-${index + 1}`);
    for (const [client, seen] of jumps.entries()) {
      await eventually(() => {
        expect(seen.map(({ node }) => node)).toEqual(expect.arrayContaining(names));
      }, withinMs);
      // Reported once with node, direction and size, and for no other node.
      expect(seen.map(({ node }) => node).sort(), `client ${client}`).toEqual(names);
      for (const jump of seen) expect(Math.round(jump.stepMs / 1_000)).toBe(stepMs / 1_000);
    }
    // All clients go on: a step costs votes, but the service continues.
    const before = tenures.length;
    await eventually(() => tenures.length >= before + tenuresEach, withinMs);
    state.running = false;
    await Promise.all(work);

    for (const { ms, fromMs } of overlaps(tenures)) {
      // A step back only prolongs keys, so it admits no second holder.
      expect(stepMs).toBeGreaterThan(0);
      expect(fromMs).toBeGreaterThanOrEqual(steppedAtMs);
      expect(ms).toBeLessThanOrEqual(windowMs);
    }
    expectOrderedFences(tenures);
    expect(new Set(tenures.map(({ client }) => client)).size).toBeGreaterThan(1);
  },
  180_000,
);

test.skipIf(!hasLibrary)(
  "a lease rests on the nodes of its longest extend, even after a shorter one",
  async () => {
    // The maxTtl of the earlier strict tests would limit every client of these nodes.
    for (const server of servers) await server.command("DEL", "holdfast:node");
    const proxies = await Promise.all(servers.slice(0, 3).map(({ port }) => startTcpProxy(port)));
    // The driver must not resend an extend that was cut off.
    const once = { autoResendUnfulfilledCommands: false };
    const clients = await Promise.all(proxies.map(({ port }) => connect(port, once)));
    const options = { nodeTimeout: "1s", maxTtl: "60s", admission: "off" } as const;
    const locks = openLocks(clients, options, { ttl: "10s", maxHold: "5m" });
    const heldBy = async (count: number): Promise<void> =>
      await eventually(async () => {
        const { nodes } = await locks.inspect(key);
        expect(nodes.filter(({ vote }) => vote === "held")).toHaveLength(count);
      }, withinMs);
    const without = async (index: number, ttl: "50s" | "10s"): Promise<void> => {
      const proxy = proxies[index];
      if (proxy === undefined) throw new Error("there are three proxies");
      proxy.requests = "drop";
      await lease.extend(ttl);
      proxy.requests = "pass";
      proxy.cutBeforeReply();
      await heldBy(3);
    };
    const lease = await locks.acquire(key);
    await heldBy(3);
    await without(2, "50s");
    await without(1, "10s");
    expect(lease.state).toBe("held");
    const lost = collect(locks, "lost");

    // The second node had the longer life, which its clock ends now; the third node never had it.
    servers[1]?.setClock(70_000);
    await eventually(async () => {
      const other = await locks.acquire("warm");
      await other.release();
      expect(lease.state).toBe("lost");
    }, withinMs);
    expect(lost).toMatchObject([{ reason: "clock" }]);
    await lease.release();
  },
  180_000,
);
