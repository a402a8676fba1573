import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { shareBuild } from "../redis/child-holder.ts";
import { eventually } from "../support/redis-eventually.ts";
import { shareRedis } from "../support/redis-harness.ts";

/** Three servers for the locks, and one for the ledger. */
const bench = shareRedis(4);
const build = shareBuild();
const script = fileURLToPath(new URL("member.child.mjs", import.meta.url));
const everyMs = 100;

async function start(nodes: number, skewMs: number): Promise<ChildProcess> {
  const ports = bench.servers.slice(0, nodes).map(({ port }) => port);
  const ledger = bench.server(3).port;
  const args = [build.folder, ports.join(","), ledger, everyMs, skewMs].map(String);
  const child = fork(script, args);
  onTestFinished(() => end(child, "SIGKILL"));
  await once(child, "message");
  return child;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

/** Returns how often each tick was run, in the order of the ticks. */
async function runs(): Promise<Map<number, number>> {
  const flat = (await bench.server(3).command("HGETALL", "runs")) as string[];
  const pairs: [number, number][] = [];
  for (let at = 0; at < flat.length; at += 2) {
    pairs.push([Number(flat[at]), Number(flat[at + 1])]);
  }
  return new Map(pairs.toSorted(([a], [b]) => a - b));
}

async function untilRuns(count: number): Promise<void> {
  await eventually(async () => (await runs()).size >= count, 60_000);
}

test.each([1, 3])(
  "on %i nodes no tick is begun twice, with clocks apart, kills and stops",
  async (nodes) => {
    onTestFinished(async () => {
      await Promise.all(bench.servers.map((server) => server.command("FLUSHALL")));
    });
    const skews = [0, 5_000, -5_000];
    const members = await Promise.all(skews.map((skew) => start(nodes, skew)));
    await untilRuns(5);
    for (let round = 0; round < 3; round += 1) {
      const [victim, ...others] = members;
      if (victim === undefined) throw new Error("there is no member");
      await end(victim, "SIGKILL");
      const stopped = others[0];
      stopped?.kill("SIGSTOP");
      // Longer than the lease, which the stopped process may have.
      await sleep(700);
      stopped?.kill("SIGCONT");
      members.shift();
      members.push(await start(nodes, skews[round] ?? 0));
      await untilRuns((await runs()).size + 5);
    }
    const counts = await runs();
    expect([...counts].filter(([, count]) => count !== 1)).toEqual([]);
    expect([...counts.keys()].every((tick) => tick % everyMs === 0)).toBe(true);
  },
);
