import { expect, onTestFinished, test } from "vitest";
import { compare } from "../../tools/simulator/differential-run.mjs";
import { RedisConnection } from "../../tools/redis/redis-connection.mjs";
import { knownScripts } from "../../src/simulator/node/scripts.ts";
import { epochMs, SimulatedServer } from "../../src/simulator/node/server.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";
import * as lua from "../../src/stores/redis/scripts/generated.ts";
import { startRedis } from "../../tools/redis/redis-server.mjs";

/** Scripts of the doctor, of lists and of layouts of groups, which the simulator does not run. */
const withoutTwin = new Set(["find-locks", "layout", "probe"]);

test("every script of the protocol has a simulated twin", () => {
  const names = Object.values(lua).map(({ name }) => name);
  const twins = new Set(knownScripts.map(({ name }) => name));
  expect(names.filter((name) => !twins.has(name) && !withoutTwin.has(name))).toEqual([]);
});

test("the simulated node replies as a real server does", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const connection = await RedisConnection.open(redis);
  onTestFinished(() => connection.close());
  const seed = Math.floor(Math.random() * 2 ** 31);
  process.stdout.write(`differential seed ${seed}\n`);
  const random = new SeededRandom(`differential ${seed}`);
  const startedMs = performance.now();
  const simulated = new SimulatedServer(
    { version: "7.0.15", rate: 1, skewMs: Date.now() - epochMs, uptimeMs: 0 },
    { realMs: () => performance.now() - startedMs, newRunId: () => random.hex(40) },
  );
  const sendAll = (commands: readonly (readonly string[])[]) => connection.sendAll(commands);
  const sides = { simulated, scripts: knownScripts, random, sendAll };
  const { differences, answers, ways } = await compare(sides, 20_000);
  expect(differences).toEqual([]);
  // Every kind of reply must occur, or the comparison proves nothing.
  const verdicts = ["G", "H", "B", "K", "N ABSENT", "N OTHER", "N NEWER", "R", "W", "F", "I"];
  const refusals = ["X PARTIAL", "X MAXTTL", "X FORMAT", "X WRONGTYPE", "NOSCRIPT", "WRONGTYPE"];
  for (const answer of [...verdicts, ...refusals]) {
    expect(answers.get(answer), answer).toBeGreaterThan(0);
  }
  // The short ways and the engine must decide often enough.
  for (const [name, expected] of Object.entries({
    fenced: { one: 0.02, touch: 0.02, held: 0.004, usual: 0.08, engine: 0.3 },
    plain: { one: 0.04, usual: 0.2, engine: 0.2 },
    cluster: { one: 0.02, touch: 0.01, engine: 0.3 },
  })) {
    const own = ways.get(name) ?? new Map<string, number>();
    const total = [...own.values()].reduce((sum, count) => sum + count, 0);
    for (const [way, share] of Object.entries(expected)) {
      expect((own.get(way) ?? 0) / total, `${name}: ${way}`).toBeGreaterThan(share);
    }
  }
});
