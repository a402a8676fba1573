import { expect, onTestFinished, test } from "vitest";
import { knownScripts } from "../../src/simulator/node/scripts.ts";
import { epochMs, SimulatedServer } from "../../src/simulator/node/server.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";
import { eventually } from "../support/redis-eventually.ts";
import { connect } from "../support/redis-harness.ts";
import { startRedis } from "../support/redis-server.ts";
import { bases, locks, QueueHistory, queueOf, type Step } from "./queue-history.ts";

/**
 * The scripts and their simulated twins must keep the same queues. Moments decide about places, so
 * both are told the same time: the script through what it takes for `redis`, which also keeps a
 * queue's key from expiring by the server's own clock, notes until when it was to live, and forgets
 * it then. So it is with who listens: that is known by a set, in which the deaf are.
 */
const shim = `
local server = redis
local redis = setmetatable({}, {__index = server})
local function now_by_test()
  local time = server.call('LRANGE', 'test:time', 0, -1)
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
for _, key in ipairs(KEYS) do
  local ends = server.call('HGET', 'test:until', key)
  if ends and tonumber(ends) < now_by_test() then server.call('DEL', key) end
end
redis.call = function(name, key, ...)
  if name == 'TIME' then return server.call('LRANGE', 'test:time', 0, -1) end
  local more = {...}
  if name == 'SET' and string.sub(key, 1, 15) == 'holdfast:queue:' then
    assert(more[2] == 'PX')
    server.call('HSET', 'test:until', key, string.format('%.0f', now_by_test() + more[3]))
    return server.call('SET', key, more[1])
  end
  if key == nil then return server.call(name) end
  return server.call(name, key, ...)
end
local function hears(channel)
  return 1 - server.call('SISMEMBER', 'test:deaf', string.match(channel, '[^:]*$'))
end
redis.pcall = function(name, ...)
  local first, second = ...
  if name == 'PUBSUB' then return {second, hears(second)} end
  local reply = server.pcall(name, ...)
  if name == 'PUBLISH' or name == 'SPUBLISH' then return hears(first) end
  return reply
end
`;

const steps = 4_000;
const chunk = 100;

interface Seen {
  readonly reply: unknown;
  readonly locks: readonly unknown[];
  readonly queues: readonly unknown[];
  readonly told: readonly string[];
}

/** A real server that runs the scripts with a time of the test's, and what it published. */
async function realSide() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const client = await connect(server.port);
  const listener = await connect(server.port);
  const heard: string[] = [];
  listener.on("pmessage", (_, channel: string, message: string) => {
    heard.push(`${channel} ${message}`);
  });
  listener.on("smessage", (channel: string, message: string) => {
    heard.push(`${channel} ${message}`);
  });
  await listener.psubscribe("*");
  await listener.ssubscribe(
    ...locks.flatMap((lock) => bases.map((base) => `${queueOf(lock)}:${base}`)),
  );
  const shas = new Map<string, string>();
  for (const { name, source } of knownScripts) {
    shas.set(name, String(await client.script("LOAD", shim + source)));
  }
  const commandsOf = ({ script, words }: Step, micros: number, index: number): string[][] => [
    ["LSET", "test:time", "0", String(Math.floor(micros / 1_000_000))],
    ["LSET", "test:time", "1", String(micros % 1_000_000)],
    script === undefined ? [...words] : ["EVALSHA", shas.get(script) ?? "", ...words],
    ["MGET", ...locks, ...locks.map(queueOf)],
    ["HMGET", "test:until", ...locks.map(queueOf)],
    ["PUBLISH", "test:step", String(index)],
  ];
  await client.rpush("test:time", "0", "0");
  return {
    async run(
      chunkOf: readonly { step: Step; micros: number }[],
      first: number,
    ): Promise<readonly Seen[]> {
      const lists = chunkOf.map(({ step, micros }, at) => commandsOf(step, micros, first + at));
      const replies = await client.pipeline(lists.flat().map(lowerCased)).exec();
      const values = (replies ?? []).map(([error, value]) => error ?? value);
      await eventually(() => heard.at(-1) === `test:step ${first + chunkOf.length - 1}`);
      return chunkOf.map(({ micros }, at) => {
        const [, , reply, kept, until] = values.slice(at * 6, at * 6 + 6);
        const all = kept as (string | null)[];
        const end = heard.indexOf(`test:step ${first + at}`);
        const told = heard.splice(0, end + 1).slice(0, -1);
        const nowMs = Math.floor(micros / 1_000);
        // What the twin's server forgets by its clock.
        const queues = all.slice(3).map((text, index) => {
          const untilMs = Number((until as (string | null)[])[index]);
          return text === null || untilMs < nowMs ? null : `${text} until ${untilMs}`;
        });
        return { reply, locks: all.slice(0, 3), queues, told };
      });
    },
  };
}

/** As ioredis wants the names of commands. */
function lowerCased([name = "", ...rest]: readonly string[]): string[] {
  return [name.toLowerCase(), ...rest];
}

function twinSide(random: SeededRandom) {
  let realMs = 0;
  const heard: string[] = [];
  const deaf = new Set<string>();
  const listeners = (channel: string): number =>
    deaf.has(channel.split(":").at(-1) ?? "") ? 0 : 1;
  const server = new SimulatedServer(
    { version: "7.0.15", rate: 1, skewMs: 0, uptimeMs: 0 },
    {
      realMs: () => realMs,
      newRunId: () => random.hex(40),
      publish: (channel, message) => {
        heard.push(`${channel} ${message}`);
        return listeners(channel);
      },
      listeners,
    },
  );
  const shas = new Map(knownScripts.map(({ name, sha }) => [name, sha]));
  for (const { source } of knownScripts) {
    // Cached as by a first use; what it does with nothing to do is not looked at.
    try {
      server.execute(["EVAL", source, "0"]);
    } catch {
      continue;
    }
  }
  server.data.clear();
  heard.length = 0;
  return {
    server,
    advance(ms: number): number {
      realMs += ms;
      return Math.floor(server.clock.at(realMs) * 1_000);
    },
    run({ kind, script, words }: Step): Seen {
      const sent =
        script === undefined ? [...words] : ["EVALSHA", shas.get(script) ?? "", ...words];
      const reply = kind === "deaf" ? deafen(deaf, words) : server.execute(sent);
      const nowMs = epochMs + Math.floor(realMs);
      const queues = locks.map((lock) => {
        const text = server.data.get(queueOf(lock));
        if (text === undefined) return null;
        return `${text} until ${nowMs + server.data.pttl(queueOf(lock))}`;
      });
      const kept = locks.map((lock) => server.data.get(lock) ?? null);
      return { reply, locks: kept, queues, told: heard.splice(0) };
    },
  };
}

/** As the set on the real server is changed, and with the same answer. */
function deafen(deaf: Set<string>, [how, , base = ""]: readonly string[]): number {
  const was = deaf.has(base);
  if (how === "SADD") deaf.add(base);
  else deaf.delete(base);
  return was === deaf.has(base) ? 0 : 1;
}

/** Lives of locks count by the server's own clock: everything else has to be the same. */
function comparable({ reply, told, ...rest }: Seen): unknown {
  const replies = (Array.isArray(reply) ? reply : [reply]).map((each: unknown) => {
    // How many keys DEL found: a queue whose places have all lapsed may be there or not.
    if (typeof each === "number") return "*";
    if (typeof each !== "string") return each;
    const words = each.split(" ");
    const isTimed = /^\d{10}$/.test(words[1] ?? "");
    const life = words[0] === "H" ? (isTimed ? 4 : 1) : words[0] === "I" ? 2 : -1;
    return words.map((word, index) => (index === life ? "*" : word)).join(" ");
  });
  return { replies, told, ...rest };
}

test("scripts and twins answer, queue and tell alike, at the same moments", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  process.stdout.write(`queues seed ${seed}\n`);
  const random = new SeededRandom(`queues ${seed}`);
  const real = await realSide();
  const twin = twinSide(random.fork("twin"));
  const history = new QueueHistory(twin.server, random.fork("history"));
  const kinds = new Map<string, number>();
  const count = (kind: string): unknown => kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  for (let first = 0; first < steps; first += chunk) {
    const drawn = Array.from({ length: chunk }, () => {
      // Mostly within a claim of 150 ms, sometimes to its very end, sometimes beyond a place. In
      // eighths of a millisecond, of which sums and microseconds are exact.
      const ms = random.pick([0, 0.375, 7.25, 30, random.integer(0, 200), 150, 3_000]);
      const micros = twin.advance(random.chance(0.9) ? Math.min(ms, 200) : ms);
      const step = history.next();
      return { step, micros, own: twin.run(step) };
    });
    const theirs = await real.run(drawn, first);
    for (const [at, { step, own }] of drawn.entries()) {
      const said = `seed ${seed}, step ${first + at}: ${step.kind} ${step.words.join(" ")}`;
      const other = theirs[at];
      if (other === undefined) throw new Error("a step without an answer");
      expect(comparable(own), said).toEqual(comparable(other));
      for (const reply of [own.reply].flat()) count(`${step.kind} ${String(reply)[0]}`);
      if (own.told.length > 0) count(`${step.kind} told`);
    }
  }
  // Every branch was taken, or the comparison shows nothing.
  const expected: Record<string, string[]> = {
    batch: ["G", "H", "Q", "R", "K", "N", "told"],
    "plain-batch": ["G", "H", "Q", "R", "K", "N", "told"],
    acquire: ["G", "H", "Q", "told"],
    "plain-acquire": ["G", "H", "Q", "told"],
    release: ["R", "told"],
    "cluster-acquire": ["G", "H", "Q", "told"],
    "cluster-release": ["R", "told"],
    inspect: ["F", "I"],
  };
  for (const [script, answers] of Object.entries(expected)) {
    for (const answer of answers) expect([...kinds.keys()]).toContain(`${script} ${answer}`);
  }
});

test("a queue takes a thousand places and no more, in the script and in its twin", async () => {
  const random = new SeededRandom("full queue");
  const real = await realSide();
  const twin = twinSide(random);
  const micros = twin.advance(10);
  const untilMs = Math.floor(micros / 1_000) + 2_000;
  const text = Array.from({ length: 999 }, (_, n) => `${n}:${untilMs}:m2-w${n}`).join(" ");
  const place = (id: string): Step => {
    const words = ["2", "a", queueOf("a"), "1", "W", "1", "1", "60000", "o2", "5000", id];
    return { kind: "plain-batch", script: "plain-batch", words };
  };
  const drawn = [
    { kind: "SET", script: undefined, words: ["SET", "a", "o1"] },
    { kind: "SET", script: undefined, words: ["SET", queueOf("a"), text] },
    place("m1-w1"),
    place("m1-w2"),
    place("m1-w1"),
  ].map((step) => ({ step, micros, own: twin.run(step) }));
  const theirs = await real.run(drawn, 0);
  const queues = theirs.map((seen) => String(seen.queues[0]));
  for (const at of [2, 3, 4]) {
    expect(queues[at]).toBe(String(drawn[at]?.own.queues[0]));
    expect(queues[at]).toContain("5000:");
    expect(queues[at]?.split(" ").length).toBe(1_000 + 2);
    expect(queues[at]).not.toContain("m1-w2");
  }
});

test("whoever comes back with another ticket is told the same time by the script and its twin", async () => {
  const real = await realSide();
  const twin = twinSide(new SeededRandom("another ticket"));
  const micros = twin.advance(10);
  const untilMs = Math.floor(micros / 1_000) + 2_500;
  const text = `1000:${untilMs}:m2-w2 1006:${untilMs}:m1-w2`;
  const terms = ["o1", "60000", "3406", "60000", "1005", "m2-w2"];
  const words = ["3", "c", "holdfast:{c}:fence", queueOf("c"), ...terms];
  const drawn = [
    { kind: "SET", script: undefined, words: ["SET", queueOf("c"), text] },
    { kind: "cluster-acquire", script: "cluster-acquire", words },
  ].map((step) => ({ step, micros, own: twin.run(step) }));
  const [, theirs] = await real.run(drawn, 0);
  expect(theirs?.reply).toMatch(/^Q .* 150$/);
  expect(drawn[1]?.own.reply).toBe(theirs?.reply);
});
