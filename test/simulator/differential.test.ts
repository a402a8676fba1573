import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { compare } from "../../tools/simulator/differential-run.mjs";
import { respSender } from "../../tools/simulator/resp-sender.mjs";
import { knownScripts } from "../../src/simulator/node/scripts.ts";
import { epochMs, SimulatedServer } from "../../src/simulator/node/server.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";
import * as lua from "../../src/stores/redis/scripts/generated.ts";
import { startRedis } from "../support/redis-server.ts";

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
  const socket = connect({ port: redis.port, host: redis.host });
  onTestFinished(() => void socket.destroy());
  const seed = Math.floor(Math.random() * 2 ** 31);
  process.stdout.write(`differential seed ${seed}\n`);
  const random = new SeededRandom(`differential ${seed}`);
  const startedMs = performance.now();
  const simulated = new SimulatedServer(
    { version: "7.0.15", rate: 1, skewMs: Date.now() - epochMs, uptimeMs: 0 },
    { realMs: () => performance.now() - startedMs, newRunId: () => random.hex(40) },
  );
  const sides = { simulated, scripts: knownScripts, random, sendAll: respSender(socket) };
  const { differences, answers, ways } = await compare(sides, 20_000);
  expect(differences).toEqual([]);
  // Every kind of reply must occur, or the comparison proves nothing.
  for (const answer of [
    "G",
    "H",
    "B",
    "K",
    "N",
    "R",
    "W",
    "X",
    "F",
    "I",
    "VK",
    "VN",
    "VT",
    "NOSCRIPT",
    "WRONGTYPE",
    "batch G",
    "batch H",
    "batch B",
    "batch K",
    "batch N",
    "batch R",
  ]) {
    expect(answers.get(answer), answer).toBeGreaterThan(0);
  }
  // Both the short and the long way must decide often enough.
  for (const name of ["acquire", "release", "batch", "plain-batch", "renew", "plain-renew"]) {
    const { short, long } = ways.get(name) ?? { short: 0, long: 0, fresh: 0 };
    expect(short / (short + long), `${name} took its short way`).toBeGreaterThan(0.15);
    expect(long / (short + long), `${name} took its long way`).toBeGreaterThan(0.15);
  }
});
