// @ts-check
/**
 * Compares the simulated node with a real server: sends the same random commands to both, and
 * compares the replies and the remaining lives of the keys. Times and run ids differ between the
 * two, so they are compared with a tolerance, or only as present or missing.
 */

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { drawCalm } from "./differential-calm.mjs";
import { listOf } from "./differential-runs.mjs";
import { countsTaken, waysOf, withCountedWays } from "./short-ways.mjs";

/** @typedef {import("../../src/simulator/node/server.ts").SimulatedServer} SimulatedServer */
/** @typedef {import("../../src/simulator/node/scripts.ts").KnownScript} KnownScript */
/** @typedef {import("../../src/simulator/seeded-random.ts").SeededRandom} SeededRandom */
/** @typedef {import("./differential-runs.mjs").Part} Part */
/**
 * @typedef {(commands: readonly (readonly string[])[]) => Promise<unknown[]>} SendAll with errors
 *   as values
 */

/** @typedef {object} Sides
 * @property {SimulatedServer} simulated
 * @property {readonly KnownScript[]} scripts
 * @property {SeededRandom} random
 * @property {SendAll} sendAll
 */

const record = "holdfast:node";
const format = "1:crc16:1024";
const batchSize = 64;
/** They differ by more than `toleranceMs`, so that a life of the wrong length is noticed. */
const ttls = [60_000, 65_000, 70_000, 80_000, 90_000];
const toleranceMs = 2_000;
const allKeys = ["a", "b", "c", "d", "e", "f"];
const lives = allKeys.map((key) => ["PTTL", key]);

/**
 * @param {Sides} sides
 * @param {number} count
 * @returns {Promise<{ commands: number, kinds: Map<string, number>, answers: Map<string, number>,
 *   ways: Map<string, import("./short-ways.mjs").Ways>, differences: string[] }>}
 */
export async function compare(sides, count) {
  const { simulated, random } = sides;
  const counted = countedScripts(sides.scripts);
  /** @type {SendAll} */
  const sendAll = (all) => sides.sendAll(all.map((command) => asCounted(counted, command)));
  await sendAll([countsTaken]);
  /** @type {string[]} */
  const differences = [];
  /** @type {Map<string, number>} */
  const kinds = new Map();
  /** @type {Map<string, number>} */
  const answers = new Map();
  let commands = 0;
  /** @type {string[][]} */
  let batch = [];
  const flush = async () => {
    const real = await sendAll(batch);
    for (const [index, command] of batch.entries()) {
      const own = execute(simulated, command);
      for (const answered of answersOf(command, own)) {
        answers.set(answered, (answers.get(answered) ?? 0) + 1);
      }
      if (!alike(command, own, real[index])) {
        differences.push(
          `${command.join(" ").slice(-300)}\n  simulated ${show(own)}\n  real      ${show(real[index])}`,
        );
      }
    }
    batch = [];
  };
  while (commands < count && differences.length < 20) {
    if (random.chance(0.4)) {
      // The command depends on the present state of the locks.
      await flush();
      const calm = drawCalm(sides, allKeys, ttls);
      if (calm !== undefined) {
        commands += 1;
        kinds.set(calm.kind, (kinds.get(calm.kind) ?? 0) + 1);
        batch.push(calm.command, ...lives);
        await flush();
        continue;
      }
    }
    const { kind, command, isShort } = draw(sides, random);
    if (kind === "admit") {
      commands += 1;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      // Each side has its own run id and start of the quarantine, which the command repeats.
      await flush();
      const [seen] = await sendAll([
        ["EVAL", "return redis.call('HMGET', KEYS[1], 'rid', 'since')", "1", record],
      ]);
      const [rid, since] = Array.isArray(seen) ? seen : ["", ""];
      const hash = attemptOf(() => simulated.data.hash(record));
      const real = command.with(5, String(rid ?? "")).with(6, String(since ?? ""));
      const own = command.with(5, hash?.get("rid") ?? "").with(6, hash?.get("since") ?? "");
      const [reply] = await sendAll([real]);
      const ownReply = execute(simulated, own);
      if (!alike(command, ownReply, reply)) {
        differences.push(
          `${command.join(" ").slice(-300)}\n  simulated ${show(ownReply)}\n  real      ${show(reply)}`,
        );
      }
      continue;
    }
    commands += 1;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    batch.push(command);
    if (command[0]?.startsWith("EVAL") && !isShort && random.chance(0.3)) batch.push(...lives);
    if (batch.length < batchSize && !isShort) continue;
    await flush();
    // A short life ends at slightly different times, so nothing is sent until it is over on both.
    if (isShort) await sleep(25);
  }
  await flush();
  const [counts] = await sendAll([countsTaken]);
  return { commands, kinds, answers, ways: waysOf(counts), differences };
}

/**
 * Returns the scripts with counts of their ways, by their own text and by its SHA-1.
 *
 * @param {readonly KnownScript[]} scripts
 */
function countedScripts(scripts) {
  return new Map(
    scripts.flatMap(({ name, source, sha }) => {
      const counting = withCountedWays(name, source);
      const own = createHash("sha1").update(counting).digest("hex");
      return /** @type {[string, string][]} */ ([
        [source, counting],
        [sha, own],
      ]);
    }),
  );
}

/**
 * Returns a command for the real server. The counts are in another database, so only the database
 * of the test is flushed.
 *
 * @param {ReadonlyMap<string, string>} counted @param {readonly string[]} command
 */
function asCounted(counted, command) {
  const [name = "", script = ""] = command;
  if (name === "FLUSHALL") return ["FLUSHDB"];
  return name.startsWith("EVAL") ? command.with(1, counted.get(script) ?? script) : command;
}

/** @param {SimulatedServer} server @param {readonly string[]} command */
function execute(server, command) {
  try {
    return server.execute(command);
  } catch (error) {
    return error;
  }
}

/** @template T @param {() => T} work */
function attemptOf(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/**
 * @param {Sides} sides @param {SeededRandom} random
 * @returns {{ kind: string, command: string[], isShort: boolean }}
 */
function draw({ scripts }, random) {
  if (random.chance(0.3)) return drawPlain(random);
  const weighted = ["fenced", "fenced", "fenced", "plain", "plain", "cluster", "cluster"];
  const name = random.chance(0.7) ? random.pick(weighted) : random.pick(scripts).name;
  const script = scripts.find((each) => each.name === name);
  if (script === undefined) throw new Error(`there is no script ${name}`);
  const isShort = random.chance(0.004);
  const ttl = String(isShort ? random.integer(1, 12) : random.pick(ttls));
  const args = argumentsOf(script.name, random, ttl);
  const head = random.chance(0.8) ? ["EVALSHA", script.sha] : ["EVAL", script.source];
  if (script.name === "admit") {
    // Sent as EVAL, because the arguments rid and since are replaced by their index.
    const [mode = "", ...rest] = args;
    const command = ["EVAL", script.source, "1", record, mode, "rid", "since", ...rest];
    return { kind: "admit", command, isShort: false };
  }
  return {
    kind: script.name,
    command: [...head, ...args],
    isShort: isShort && usesTtl(script.name),
  };
}

/** @param {string} name */
function usesTtl(name) {
  return ["fenced", "plain", "cluster"].includes(name);
}

/** @param {SeededRandom} random */
function keysOf(random) {
  const { length } = Array(random.pick([1, 1, 1, 2, 3]));
  return [...new Set(Array.from({ length }, () => random.pick(allKeys)))];
}

/** Fence in µs, beyond the limit for a rise of the counter. */
const farAhead = "4000000000000000";

/** @type {{ keys: string[], owner: string, number: string } | undefined} */
let last;

/** @param {string} name @param {SeededRandom} random @param {string} ttl @returns {string[]} */
function argumentsOf(name, random, ttl) {
  const deployment = [
    random.pick(["0", "0", "1"]),
    random.pick(["strict", "strict", "off"]),
    random.chance(0.97) ? format : "2:other",
    random.pick(["80000", "80000", "65000"]),
  ];
  switch (name) {
    case "node-record":
      return ["1", record, ...deployment.with(0, "1")];
    case "admit":
      return [
        random.pick(["copy", "bootstrap", "clock"]),
        random.pick(["0", "0", "10000000"]),
        String(random.integer(0, 90)),
        random.pick(["0", "25", farAhead]),
        ...keysOf(random).flatMap(() => [
          String(random.integer(0, 3)),
          String(random.integer(0, 60)),
        ]),
      ];
    case "inspect":
      return ["2", random.pick(allKeys), "holdfast:{x}:waiters"];
    case "break-foreign":
      return ["1", random.pick(allKeys), random.pick([...values, ...shownValues])];
    default: {
      const length = random.chance(0.5) ? 1 : random.integer(2, 5);
      const parts = Array.from({ length }, () => partOf(name, random, ttl));
      return listOf(name, parts, deployment);
    }
  }
}

/**
 * Draws one operation without a queue entry. Queues depend on exact times, which differ between the
 * sides. They are compared in test/simulator/queues.test.ts, where both get the same time.
 *
 * @param {string} name @param {SeededRandom} random @param {string} ttl
 * @returns {import("./differential-runs.mjs").Part}
 */
function partOf(name, random, ttl) {
  // Often uses the same keys and owner as before, or few operations would find their own key.
  const again = random.chance(0.6) ? last : undefined;
  const locks = again?.keys ?? keysOf(random);
  const owner = again?.owner ?? random.pick(["o1", "o2", "o3", "o1-1"]);
  const other = String(
    random.chance(0.02)
      ? 9_007_199_254_740_991 - random.integer(-1, 2)
      : random.pick([random.integer(0, 40), random.integer(30, 90)]),
  );
  const aheadOrNot = random.chance(0.01) ? farAhead : other;
  const number = random.chance(0.4) ? (again?.number ?? other) : aheadOrNot;
  last = { keys: locks, owner, number };
  const hasFences = name !== "plain";
  const shards = name === "fenced" ? locks.map(() => String(random.integer(0, 3))) : [];
  const code = random.pick(["A", "A", "T", "T", "R", "R", "P"]);
  const own = Number(ttl) < 1_000 ? ttl : String(random.pick(ttls));
  if (code === "A") {
    return { code, locks, ttl: own, args: [owner, ...(hasFences ? [number] : []), ...shards] };
  }
  if (code === "T") {
    // Possibly the last fence that was granted, or a greater one.
    const fence = Number(number) + random.pick([0, 30]);
    const whole = hasFences ? `${owner}|${fence}` : owner;
    return { code, locks, ttl: random.chance(0.5) ? own : "0", args: [whole, ...shards] };
  }
  // The whole value of the key, or only its owner.
  const whole = random.chance(0.5) ? owner : `${owner}|${random.integer(1, 90)}`;
  return { code, locks, ttl: "0", args: code === "P" ? [whole, "-w"] : [whole] };
}

const own = "hf:0123456789abcdefABCDE-_-1a@job%20one|12";
const long = `${"foreign ".repeat(40)}\n`;
const short = ["o1", "o2|7", "o1|3", "foreign value", "x|y|12", "|5", "o3|", "line\nbreak", "grün"];
const cut = [long, `hf:${long}`, `hf:${"x".repeat(3_000)}`];
const values = [...short, own, ...cut];
/** The form in which `_exactly.lua` returns values that are too long. */
const shownValues = cut.map((value) => {
  const sha1 = createHash("sha1").update(value).digest("hex");
  const beginning = value.slice(0, 128).replaceAll(/[^ -~]/g, "?");
  return `${beginning}... (${value.length} bytes, sha1 ${sha1})`;
});

/** @param {SeededRandom} random */
function drawPlain(random) {
  const key = random.pick(allKeys);
  const value = random.pick(values);
  const isShort = random.chance(0.01);
  const ttl = String(isShort ? random.integer(1, 12) : 75_000);
  const [kind, command] = random.pick(
    /** @type {[string, string[]][]} */ ([
      ["SET NX GET PX", ["SET", key, value, "NX", "GET", "PX", ttl]],
      ["SET PX", ["SET", key, value, "PX", ttl]],
      ["SET", ["SET", key, value]],
      ["GET", ["GET", key]],
      ["GET", ["GET", `holdfast:{${key}}:fence`]],
      ["DEL", ["DEL", key]],
      ["DEL", ["DEL", key, "b"]],
      ["DEL", ["DEL", key]],
      ["PTTL", ["PTTL", key]],
      ["PEXPIRE", ["PEXPIRE", key, ttl]],
      ["EXISTS", ["EXISTS", key, record]],
      ["HGET", ["HGET", record, String(random.integer(0, 3))]],
      ["HGETALL", ["HGETALL", record]],
      ["HSET", ["HSET", random.chance(0.9) ? record : key, "7", "1"]],
      ["PING", ["PING"]],
      ["SCRIPT FLUSH", random.chance(0.2) ? ["SCRIPT", "FLUSH"] : ["PING"]],
      ["FLUSHALL", random.chance(0.1) ? ["FLUSHALL"] : ["PING"]],
      ["DEL record", random.chance(0.3) ? ["DEL", record] : ["PING"]],
      ["wrong type", random.chance(0.05) ? ["SET", record, "text"] : ["PING"]],
      ["syntax", ["SET", key, value, "PX", "0"]],
      ["syntax", ["SET", key, value, "OOPS"]],
    ]),
  );
  return { kind, command, isShort: isShort && /PX|PEXPIRE/.test(kind) };
}

/** @param {readonly string[]} command @param {unknown} own @param {unknown} real */
function alike(command, own, real) {
  if (own instanceof Error || real instanceof Error) {
    if (!(own instanceof Error && real instanceof Error)) return false;
    return own.message.split(" ")[0] === real.message.split(" ")[0];
  }
  if (command[0] === "PTTL") return near(own, real);
  if (command[0] === "HGETALL") return pairs(own) === pairs(real);
  if (typeof own !== "string" || typeof real !== "string") {
    return JSON.stringify(own) === JSON.stringify(real);
  }
  const [ours, theirs] = [own.split("\n"), real.split("\n")];
  if (ours.length !== theirs.length) return false;
  return ours.every((line, index) => {
    const [one, other] = [wordsOf(line), wordsOf(theirs[index] ?? "")];
    if (one.times.some((ms, at) => !near(ms, other.times[at]))) return false;
    return one.rest === other.rest;
  });
}

/** @param {unknown} reply */
function pairs(reply) {
  if (!Array.isArray(reply)) return JSON.stringify(reply);
  const lines = [];
  for (let index = 0; index < reply.length; index += 2) {
    const isOwn = ["rid", "since", "off"].includes(reply[index]);
    lines.push(`${reply[index]}=${isOwn ? "*" : reply[index + 1]}`);
  }
  return lines.sort().join(" ");
}

/** Splits a line into what depends on the clock, and the rest. @param {string} line */
function wordsOf(line) {
  const words = line.split(" ");
  const [kind] = words;
  const masked = (/** @type {number[]} */ ...at) =>
    words.map((word, index) => (at.includes(index) ? "*" : word)).join(" ");
  if (kind === "W") return { times: [], rest: `W ${pairs(words.slice(4))}` };
  if (kind === "L") return { times: [words[1]], rest: "L" };
  if (kind === "I") return { times: [words[2]], rest: masked(2) };
  if (kind === "H") return { times: [words[1]], rest: masked(1) };
  if (kind === "B") return { times: [], rest: masked(1) };
  // A run id is masked, but a missing one is compared.
  if (kind === "S") return { times: [], rest: masked(1, 2, words[3] === "-" ? 0 : 3) };
  return { times: [], rest: line };
}

/** @param {unknown} one @param {unknown} other */
function near(one, other) {
  const [a, b] = [Number(one), Number(other)];
  return a === b || (a > 0 && b > 0 && Math.abs(a - b) < toleranceMs);
}

/** Returns the verdicts in a reply. @param {readonly string[]} command @param {unknown} reply */
function answersOf([name], reply) {
  if (reply instanceof Error) return reply.message.split(" ").slice(0, 1);
  if (name?.startsWith("EVAL") !== true || typeof reply !== "string") return [typeof reply];
  const [first = "", ...lines] = reply.split("\n");
  return lines.length === 0 ? [wordOf(first)] : lines.map(wordOf);
}

/** @param {string} line */
function wordOf(line) {
  return /^(?:N [A-Z]+|X [A-Z]+|[A-Z]+)(?= |$)/.exec(line)?.[0] ?? "";
}

/** @param {unknown} reply */
function show(reply) {
  return reply instanceof Error ? `error ${reply.message}` : JSON.stringify(reply);
}
