import { expect, onTestFinished, test } from "vitest";
import { countsTaken, waysOf, withCountedWays } from "../../tools/simulator/short-ways.mjs";
import { knownScripts } from "../../src/simulator/node/scripts.ts";
import { epochMs, SimulatedServer } from "../../src/simulator/node/server.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";
import { eventually } from "../support/redis-eventually.ts";
import { connect } from "../support/redis-harness.ts";
import { startRedis } from "../../tools/redis/redis-server.mjs";
import { bases, locks, QueueHistory, queueOf, type Step } from "./queue-history.ts";

/**
 * The scripts and their simulated twins must keep the same queues. Queue entries depend on the
 * time, so both sides get the same: the script through a replacement of `redis`. It also keeps a
 * queue's key from expiring by the server's own clock, records its expiry, and deletes it at that
 * time. A set lists the managers that are not subscribed, which replaces PUBSUB NUMSUB.
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
  if name == 'PEXPIRE' and string.sub(key, 1, 17) == 'holdfast:waiters:' then
    return server.call('HSET', 'test:until', key, string.format('%.0f', now_by_test() + more[1]))
  end
  if key == nil then return server.call(name) end
  return server.call(name, key, ...)
end
local function listeners(channel)
  return 1 - server.call('SISMEMBER', 'test:deaf', string.match(channel, '[^:]*$'))
end
redis.pcall = function(name, ...)
  local first, second = ...
  if name == 'PUBSUB' then return {second, listeners(second)} end
  local reply = server.pcall(name, ...)
  if name == 'PUBLISH' or name == 'SPUBLISH' then return listeners(first) end
  return reply
end
`;

const steps = 4_000;
const chunk = 100;

interface Seen {
  readonly reply: unknown;
  readonly locks: readonly unknown[];
  readonly queues: readonly unknown[];
  readonly notified: readonly string[];
}

/**
 * Returns a real server that runs the scripts with the test's time, and records what it published.
 */
async function realSide() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const client = await connect(server.port);
  const listener = await connect(server.port);
  const published: string[] = [];
  listener.on("pmessage", (_, channel: string, message: string) => {
    published.push(`${channel} ${message}`);
  });
  listener.on("smessage", (channel: string, message: string) => {
    published.push(`${channel} ${message}`);
  });
  await listener.psubscribe("*");
  await listener.ssubscribe(
    ...locks.flatMap((lock) => bases.map((base) => `${queueOf(lock)}:${base}`)),
  );
  const shas = new Map<string, string>();
  for (const { name, source } of knownScripts) {
    shas.set(name, String(await client.script("LOAD", shim + withCountedWays(name, source))));
  }
  const commandsOf = ({ script, words }: Step, micros: number, index: number): string[][] => [
    ["LSET", "test:time", "0", String(Math.floor(micros / 1_000_000))],
    ["LSET", "test:time", "1", String(micros % 1_000_000)],
    script === undefined ? [...words] : ["EVALSHA", shas.get(script) ?? "", ...words],
    ["MGET", ...locks],
    ...locks.map((lock) => ["ZRANGE", queueOf(lock), "0", "-1", "WITHSCORES"]),
    ["HMGET", "test:until", ...locks.map(queueOf)],
    ["PUBLISH", "test:step", String(index)],
  ];
  await client.rpush("test:time", "0", "0");
  return {
    ways: async () => waysOf(await server.command(...countsTaken)),
    async run(
      chunkOf: readonly { step: Step; micros: number }[],
      first: number,
    ): Promise<readonly Seen[]> {
      const lists = chunkOf.map(({ step, micros }, at) => commandsOf(step, micros, first + at));
      const replies = await client.pipeline(lists.flat().map(lowerCased)).exec();
      const values = (replies ?? []).map(([error, value]) => error ?? value);
      await eventually(() => published.at(-1) === `test:step ${first + chunkOf.length - 1}`);
      return chunkOf.map(({ micros }, at) => {
        const [, , reply, kept, ...more] = values.slice(at * 9, at * 9 + 9);
        const until = more[locks.length];
        const end = published.indexOf(`test:step ${first + at}`);
        const notified = published.splice(0, end + 1).slice(0, -1);
        const nowMs = Math.floor(micros / 1_000);
        // Entries that the twin's server deletes by its clock.
        const queues = locks.map((_, index) => {
          const members = more[index] as string[];
          const untilMs = Number((until as (string | null)[])[index]);
          if (members.length === 0 || untilMs < nowMs) return null;
          return `${members.join(" ")} until ${untilMs}`;
        });
        return { reply, locks: kept as unknown[], queues, notified };
      });
    },
  };
}

/** Lower-cases the name of a command, as ioredis requires. */
function lowerCased([name = "", ...rest]: readonly string[]): string[] {
  return [name.toLowerCase(), ...rest];
}

function twinSide(random: SeededRandom) {
  let realMs = 0;
  const published: string[] = [];
  const deaf = new Set<string>();
  const listeners = (channel: string): number =>
    deaf.has(channel.split(":").at(-1) ?? "") ? 0 : 1;
  const server = new SimulatedServer(
    { version: "7.0.15", rate: 1, skewMs: 0, uptimeMs: 0 },
    {
      realMs: () => realMs,
      newRunId: () => random.hex(40),
      publish: (channel, message) => {
        published.push(`${channel} ${message}`);
        return listeners(channel);
      },
      listeners,
    },
  );
  const shas = new Map(knownScripts.map(({ name, sha }) => [name, sha]));
  for (const { source } of knownScripts) {
    // Run once, so that it is in the cache. The result without keys does not matter.
    try {
      server.execute(["EVAL", source, "0"]);
    } catch {
      continue;
    }
  }
  server.data.clear();
  published.length = 0;
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
        const members = server.data.sortedSet(queueOf(lock))?.pairs();
        if (members === undefined) return null;
        return `${members.join(" ")} until ${nowMs + server.data.pttl(queueOf(lock))}`;
      });
      const kept = locks.map((lock) => server.data.get(lock) ?? null);
      return { reply, locks: kept, queues, notified: published.splice(0) };
    },
  };
}

/** Changes the set as the real server does, and returns the same reply. */
function deafen(deaf: Set<string>, [how, , base = ""]: readonly string[]): number {
  const was = deaf.has(base);
  if (how === "SADD") deaf.add(base);
  else deaf.delete(base);
  return was === deaf.has(base) ? 0 : 1;
}

/**
 * Hides lives of locks, which depend on the server's own clock. All the rest has to be the same.
 */
function comparable({ reply, notified, ...rest }: Seen): unknown {
  // A number is the reply to DEL: a queue with only expired entries may exist or not.
  const lines = typeof reply === "string" ? reply.split("\n") : ["*"];
  const replies = lines.map((line) => {
    const words = line.split(" ");
    const life = words[0] === "H" ? 1 : words[0] === "I" ? 2 : -1;
    return words.map((word, index) => (index === life ? "*" : word)).join(" ");
  });
  return { replies, notified, ...rest };
}

test("scripts and twins reply, queue and notify alike, at the same moments", async () => {
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
      // Mostly within a claim of 150 ms, sometimes exactly its end, sometimes beyond an entry's
      // life. In eighths of a millisecond, whose sums and microseconds are exact.
      const ms = random.pick([
        0,
        0.375,
        7.25,
        30,
        random.integer(0, 200),
        150,
        3_000,
        7_500,
        15_000,
      ]);
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
      for (const line of String(own.reply).split("\n")) count(`${step.kind} ${line[0]}`);
      if (own.notified.length > 0) count(`${step.kind} notified`);
    }
  }
  // Both the short way of a repeated attempt and the engine must decide often enough.
  const ways = await real.ways();
  for (const name of ["fenced", "plain"]) {
    const own = ways.get(name);
    expect(own?.get("held"), `${name} took the short way of a waiter`).toBeGreaterThan(
      steps * 0.01,
    );
    expect(own?.get("engine"), `${name} took its long way`).toBeGreaterThan(steps * 0.05);
  }
  // Every branch must be taken, or the comparison proves nothing.
  const expected: Record<string, string[]> = {
    fenced: ["G", "H", "Q", "R", "K", "N", "notified"],
    plain: ["G", "H", "Q", "R", "K", "N", "notified"],
    cluster: ["G", "H", "Q", "R", "K", "N", "notified"],
    inspect: ["F", "I"],
  };
  for (const [script, answers] of Object.entries(expected)) {
    for (const answer of answers) expect([...kinds.keys()]).toContain(`${script} ${answer}`);
  }
});

/** Runs the steps on both sides, with the same pauses. Returns the results of the script calls. */
async function both(
  steps: readonly (Step & { readonly afterMs?: number })[],
): Promise<readonly (readonly [Seen, Seen])[]> {
  const real = await realSide();
  const twin = twinSide(new SeededRandom("at one moment"));
  twin.advance(10);
  const drawn = steps.map((step) => {
    const micros = twin.advance(step.afterMs ?? 0);
    return { step, micros, own: twin.run(step) };
  });
  const theirs = await real.run(drawn, 0);
  return drawn.flatMap(({ step, own }, at) => {
    const other = theirs[at];
    if (other === undefined) throw new Error("a step without an answer");
    return step.script === undefined ? [] : [[own, other] as const];
  });
}

function waits(id: string, ticket: string): Step {
  const words = ["2", "a", queueOf("a"), "1", "", "W 1 1", "60000", "o2", ticket, id, "1"];
  return { kind: "plain", script: "plain", words };
}

/** Fills the queue of `a` with `count` entries, with tickets from 0, which expire at `untilMs`. */
function placed(count: number, untilMs: number): Step[] {
  const all = Array.from({ length: count }, (_, n) => `m2-w${n.toString(36)}`);
  return [
    { kind: "SET", script: undefined, words: ["SET", "a", "o1"] },
    ...Array.from({ length: Math.ceil(count / 500) }, (_, chunkOf) => {
      const ids = all.slice(chunkOf * 500, chunkOf * 500 + 500);
      const members = ids.flatMap((id, n) => [
        String(chunkOf * 500 + n),
        id,
        String(-2 * untilMs),
        `~${id}`,
      ]);
      return { kind: "ZADD", script: undefined, words: ["ZADD", queueOf("a"), ...members] };
    }),
    // So that the key expires on both sides with the last of them.
    waits("m3-w1", "20000"),
  ];
}

const nowMs = epochMs + 10;
const rankIn = (reply: unknown): unknown => String(reply).split("\n")[1]?.split(" ")[2];

test("a queue accepts ten thousand entries and no more, in the script and in its twin", async () => {
  const seen = await both([
    ...placed(9_998, nowMs + 20_000),
    waits("m1-w1", "30000"),
    waits("m1-w2", "40000"),
    waits("m1-w1", "30000"),
  ]);
  for (const [own, other] of seen) expect(comparable(own)).toEqual(comparable(other));
  const ranks = seen.slice(-3).map(([{ reply }]) => rankIn(reply));
  // The second waiter has no entry, and ranks behind all of them.
  expect(ranks).toEqual(["9999", "10000", "9999"]);
  const members = String(seen.at(-1)?.[1].queues[0]);
  expect([members.includes(" m1-w1 "), members.includes(" m1-w2 ")]).toEqual([true, false]);
});

test("one call removes at most a hundred expired entries, and reports rank 0 meanwhile", async () => {
  const seen = await both([
    ...placed(250, nowMs),
    waits("m3-w1", "20000"),
    waits("m3-w1", "20000"),
    waits("m3-w1", "20000"),
  ]);
  for (const [own, other] of seen) expect(comparable(own)).toEqual(comparable(other));
  // Without the waiter that makes the attempt.
  const lapsed = seen.map(([, { queues }]) => String(queues[0]).split("~").length - 2);
  expect(lapsed).toEqual([150, 50, 0, 0]);
  const ranks = seen.map(([, { reply }]) => rankIn(reply));
  expect(ranks).toEqual(["0", "0", "0", "0"]);
});

test("an attempt with a fresh entry writes nothing, and another ticket moves the entry", async () => {
  const seen = await both([
    { kind: "SET", script: undefined, words: ["SET", "a", "o1"] },
    waits("m1-w1", "1000"),
    waits("m2-w1", "2000"),
    waits("m1-w1", "1000"),
    waits("m2-w1", "2000"),
    waits("m1-w1", "3000"),
  ]);
  for (const [own, other] of seen) expect(comparable(own)).toEqual(comparable(other));
  const ranks = seen.map(([{ reply }]) => rankIn(reply));
  expect(ranks).toEqual(["0", "1", "0", "1", "1"]);
});

test("an entry is prolonged by the first attempt after half of its life, and not before", async () => {
  const seen = await both([
    { kind: "SET", script: undefined, words: ["SET", "a", "o1"] },
    waits("m1-w1", "1000"),
    { ...waits("m1-w1", "1000"), afterMs: 7_499 },
    { ...waits("m1-w1", "1000"), afterMs: 1 },
  ]);
  for (const [own, other] of seen) expect(comparable(own)).toEqual(comparable(other));
  const ends = seen.map(([, { queues }]) => Number(String(queues[0]).split(" until ")[1]) - nowMs);
  expect(ends).toEqual([15_000, 15_000, 22_500]);
});
