// @ts-check
/**
 * Is the simulated node honest? Sends the same random commands to it and to a real server and
 * compares the replies and what is left of the keys' lives, with moments and run ids made
 * comparable.
 */

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { drawCalm } from "./differential-calm.mjs";
import { runsOf } from "./differential-runs.mjs";
import { countsTaken, waysOf, withCountedWays } from "./short-ways.mjs";

/** @typedef {import("../../src/simulator/node/server.ts").SimulatedServer} SimulatedServer */
/** @typedef {import("../../src/simulator/node/scripts.ts").KnownScript} KnownScript */
/** @typedef {import("../../src/simulator/seeded-random.ts").SeededRandom} SeededRandom */
/** @typedef {import("./differential-runs.mjs").Part} Part */
/** @typedef {(commands: readonly (readonly string[])[]) => Promise<unknown[]>} SendAll errors as values */

/** @typedef {object} Sides
 * @property {SimulatedServer} simulated
 * @property {readonly KnownScript[]} scripts
 * @property {SeededRandom} random
 * @property {SendAll} sendAll
 */

const record = "holdfast:node";
const format = "1:crc16:1024";
const batchSize = 64;
/** Some are further apart than the sides are, so that a life that was cut short shows. */
const ttls = [60_000, 65_000, 70_000, 80_000, 90_000];
const toleranceMs = 2_000;
const allKeys = ["a", "b", "c", "d", "e", "f"];
const lives = allKeys.map((key) => ["PTTL", key]);

/**
 * @param {Sides} sides
 * @param {number} count
 * @returns {Promise<{ commands: number, kinds: Map<string, number>, answers: Map<string, number>, ways: Map<string, import("./short-ways.mjs").Ways>, differences: string[] }>}
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
      // It is drawn from what is there now.
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
      // Each side kept a moment and a run id of its own.
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
    if (kind.endsWith("batch")) {
      await flush();
      // There a key of another type is no error but a verdict, for which there is a test of its own.
      if (hasOtherType(simulated)) continue;
    }
    commands += 1;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    batch.push(command);
    if (command[0]?.startsWith("EVAL") && !isShort && random.chance(0.3)) batch.push(...lives);
    if (batch.length < batchSize && !isShort) continue;
    await flush();
    // Nothing is asked of a short life until it is over on both sides.
    if (isShort) await sleep(25);
  }
  await flush();
  const [counts] = await sendAll([countsTaken]);
  return { commands, kinds, answers, ways: waysOf(counts), differences };
}

/**
 * By their own text and by its SHA-1: the same scripts, which count their ways.
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
 * As the real server gets it. The counts are in another database, and stay where all is flushed.
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

/** @param {SimulatedServer} server */
function hasOtherType(server) {
  const looks = [...allKeys.map((key) => ["GET", key]), ["HGET", record, "st"]];
  return looks.some((look) => execute(server, look) instanceof Error);
}

/** @template T @param {() => T} work */
function attemptOf(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}

const renewals = new Map([
  ["acquire", "renew"],
  ["plain-acquire", "plain-renew"],
]);
let lastName = "";

/**
 * @param {Sides} sides @param {SeededRandom} random
 * @returns {{ kind: string, command: string[], isShort: boolean }}
 */
function draw({ scripts }, random) {
  if (random.chance(0.3)) return drawPlain(random);
  // What was granted is mostly gone again soon: a renewal would hardly ever find it.
  const renewal = scripts.find(({ name }) => name === renewals.get(lastName));
  const script = (random.chance(0.5) ? renewal : undefined) ?? random.pick(scripts);
  lastName = script.name;
  const isShort = random.chance(0.004);
  const ttl = String(isShort ? random.integer(1, 12) : random.pick(ttls));
  const args = argumentsOf(script.name, random, ttl);
  const head = random.chance(0.8) ? ["EVALSHA", script.sha] : ["EVAL", script.source];
  if (script.name === "admit") {
    // Sent as EVAL, because the places of rid and since are counted from the front.
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
  return !name.endsWith("release") && !["break-foreign", "inspect", "node-record"].includes(name);
}

/** As it should stand there, or only the owner. @param {string} owner @param {SeededRandom} random */
function valueOf(owner, random) {
  return random.chance(0.5) ? owner : `${owner}|${random.integer(1, 90)}`;
}

/** @param {SeededRandom} random */
function keysOf(random) {
  const { length } = Array(random.pick([1, 1, 1, 2, 3]));
  return [...new Set(Array.from({ length }, () => random.pick(allKeys)))];
}

/** µs; beyond what a server lets a counter rise to. */
const farAhead = "4000000000000000";

/** @type {{ keys: string[], owner: string, number: string } | undefined} */
let last;

/** @param {string} name @param {SeededRandom} random @param {string} ttl @returns {string[]} */
function argumentsOf(name, random, ttl) {
  // Often about the same keys and owner as before: else hardly anybody would find a key of its own.
  const again = random.chance(name.endsWith("renew") ? 0.9 : 0.6) ? last : undefined;
  const keys = again?.keys ?? keysOf(random);
  const owner = again?.owner ?? random.pick(["o1", "o2", "o3", "o1-1"]);
  const other = String(
    random.chance(0.02)
      ? 9_007_199_254_740_991 - random.integer(-1, 2)
      : random.pick([random.integer(0, 40), random.integer(30, 90)]),
  );
  const aheadOrNot = random.chance(0.01) ? farAhead : other;
  const number = random.chance(name.endsWith("renew") ? 0.9 : 0.3)
    ? (again?.number ?? other)
    : aheadOrNot;
  last = { keys, owner, number };
  const deployment = [
    random.pick(["0", "0", "1"]),
    random.pick(["strict", "strict", "off"]),
    random.chance(0.97) ? format : "2:other",
    random.pick(["80000", "80000", "65000"]),
  ];
  const shards = keys.map(() => String(random.integer(0, 3)));
  const maybeTtl = random.chance(0.5) ? ttl : "0";
  const counters = keys.map((key) => `holdfast:{${key}}:fence`);
  // Empty here: moments decide about queues, and both sides have their own. They are compared in
  // test/simulator/queues.test.ts, where both are told the time.
  const queues = keys.map((key) => `holdfast:{${key}}:waiters`);
  switch (name) {
    case "acquire":
      return [
        String(2 * keys.length + 1),
        record,
        ...keys,
        ...queues,
        ...deployment,
        owner,
        ttl,
        number,
        ...shards,
      ];
    case "touch":
      return [
        String(keys.length + 1),
        record,
        ...keys,
        ...deployment,
        owner,
        maybeTtl,
        number,
        ...shards,
      ];
    case "renew":
      return [
        String(keys.length + 1),
        record,
        ...keys,
        ...deployment,
        ttl,
        // The one that was granted last, perhaps, or a greater one.
        ...keys.map(() => `${owner}|${Number(number) + random.pick([0, 30])}`),
      ];
    case "plain-renew":
      return [String(keys.length), ...keys, ttl, ...keys.map(() => valueOf(owner, random))];
    case "node-record":
      return ["1", record, ...deployment.with(0, "1")];
    case "admit":
      return [
        random.pick(["copy", "bootstrap", "clock"]),
        random.pick(["0", "0", "10000000"]),
        number,
        random.pick(["0", "25", farAhead]),
        ...shards.flatMap((shard) => [shard, String(random.integer(0, 60))]),
      ];
    case "release":
      return [String(2 * keys.length), ...keys, ...queues, valueOf(owner, random)];
    case "cluster-release":
      return [String(2 * keys.length), ...keys, ...queues, owner, random.pick(["", "-w", "=w"])];
    case "inspect":
      return ["2", random.pick(keys), "holdfast:{x}:waiters"];
    case "break-foreign":
      return ["1", random.pick(keys), random.pick([...values, ...shownValues])];
    case "plain-acquire":
      return [String(2 * keys.length), ...keys, ...queues, owner, ttl];
    case "plain-touch":
      return [String(keys.length), ...keys, owner, maybeTtl];
    case "batch":
    case "plain-batch": {
      const isPlain = name === "plain-batch";
      const parts = Array.from({ length: random.integer(1, 5) }, () => {
        const code = random.pick(["A", "A", "T", "R", "R", "P"]);
        const single = { A: "acquire", T: "touch" }[code] ?? "release";
        const own = Number(ttl) < 1_000 ? ttl : String(random.pick(ttls));
        return { code, ...partOf(argumentsOf(single, random, own), code, isPlain) };
      });
      const locks = parts.flatMap((part) => part.locks);
      const all = [...locks, ...parts.flatMap((part) => part.queues)];
      return [
        String(all.length + (isPlain ? 0 : 1)),
        ...(isPlain ? all : [record, ...all, ...deployment]),
        String(locks.length),
        ...runsOf(parts),
      ];
    }
    case "cluster-acquire":
      return [
        String(keys.length * 3),
        ...keys,
        ...counters,
        ...queues,
        owner,
        ttl,
        number,
        "86400000",
      ];
    case "cluster-touch":
      return [String(keys.length * 2), ...keys, ...counters, owner, maybeTtl, number, "86400000"];
    default:
      throw new Error(`no arguments are known for the script ${name}`);
  }
}

/**
 * The arguments of one operation as a batch takes them.
 *
 * @param {readonly string[]} single @param {string} code @param {boolean} isPlain
 * @returns {Omit<Part, "code">}
 */
function partOf(single, code, isPlain) {
  const count = Number(single[0]);
  const isRelease = code === "R" || code === "P";
  const keys = single.slice(isRelease ? 1 : 2, count + 1);
  const locks = code === "T" ? keys : keys.slice(0, keys.length / 2);
  const queues = code === "T" ? [] : keys.slice(keys.length / 2);
  if (isRelease) {
    const args = [...single.slice(count + 1), ...(code === "P" ? ["-w"] : [])];
    return { locks, queues, ttl: "0", args };
  }
  const [owner = "", ttl = "", ...rest] = single.slice(count + 5);
  return { locks, queues, ttl, args: [owner, ...(isPlain ? [] : rest)] };
}

const own = "hf:0123456789abcdefABCDE-_-1a@job%20one|12";
const long = `${"foreign ".repeat(40)}\n`;
const short = ["o1", "o2|7", "o1|3", "foreign value", "x|y|12", "|5", "o3|", "line\nbreak", "grün"];
const cut = [long, `hf:${long}`, `hf:${"x".repeat(3_000)}`];
const values = [...short, own, ...cut];
/** As `_exactly.lua` gives those that it does not give as they are. */
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

/**
 * What a part says is what the script for one of them says, but that a refusal may tell the lifetime
 * from before an extension in the same batch.
 *
 * @param {unknown} own @param {unknown} real
 */
function alikeParts(own, real) {
  const [one, other] = [wordsOf(String(own)), wordsOf(String(real))];
  return one.rest === other.rest;
}

/** @param {readonly string[]} command @param {unknown} own @param {unknown} real */
function alike(command, own, real) {
  if (own instanceof Error || real instanceof Error) {
    if (!(own instanceof Error && real instanceof Error)) return false;
    return own.message.split(" ")[0] === real.message.split(" ")[0];
  }
  if (command[0] === "PTTL") return near(own, real);
  if (command[0] === "HGETALL") return pairs(own) === pairs(real);
  const isBatch = command[0]?.startsWith("EVAL") && Array.isArray(own) && Array.isArray(real);
  if (isBatch) {
    return own.length === real.length && own.every((part, index) => alikeParts(part, real[index]));
  }
  if (typeof own !== "string" || typeof real !== "string") {
    return JSON.stringify(own) === JSON.stringify(real);
  }
  const [one, other] = [wordsOf(own), wordsOf(real)];
  if (one.times.some((ms, index) => !near(ms, other.times[index]))) return false;
  return one.rest === other.rest;
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

/** @param {string} reply */
function wordsOf(reply) {
  const words = reply.split(" ");
  const [kind] = words;
  const masked = (/** @type {number[]} */ ...at) =>
    words.map((word, index) => (at.includes(index) ? "*" : word)).join(" ");
  /** A run id is masked, its absence is not. */
  const rid = words[3] === "-" ? 0 : 3;
  const isTimed = words.length > 3 && /^\d{10}$/.test(words[1] ?? "");
  if (kind === "W") return { times: [], rest: `W ${pairs(words.slice(4))}` };
  if (kind === "L") return { times: [words[1]], rest: "L" };
  if (kind === "I") return { times: [words[2]], rest: masked(2) };
  if (kind === "H") return { times: [words[4]], rest: masked(1, 2, rid || 1, 4) };
  if (kind === "B" && isTimed) return { times: [], rest: masked(1, 2, 3, 4) };
  if (["G", "K", "N", "S", "V"].includes(kind ?? "") && isTimed) {
    return { times: [], rest: masked(1, 2, rid || 1) };
  }
  return { times: [], rest: reply };
}

/** @param {unknown} one @param {unknown} other */
function near(one, other) {
  const [a, b] = [Number(one), Number(other)];
  return a === b || (a > 0 && b > 0 && Math.abs(a - b) < toleranceMs);
}

/** Those of a batch's operations each on its own. @param {readonly string[]} command @param {unknown} reply */
function answersOf([name], reply) {
  if (reply instanceof Error) return reply.message.split(" ").slice(0, 1);
  if (name?.startsWith("EVAL") !== true || !Array.isArray(reply)) return [wordOf(reply) ?? ""];
  return reply.map((part) => `batch ${wordOf(part)}`);
}

/** @param {unknown} reply */
function wordOf(reply) {
  if (typeof reply !== "string") return typeof reply;
  // The rarest of its verdicts tells more.
  if (reply.startsWith("V ")) return reply.includes("T") ? "VT" : reply.includes("K") ? "VK" : "VN";
  return /^[A-Z]+(?= |$)/.exec(reply)?.[0];
}

/** @param {unknown} reply */
function show(reply) {
  return reply instanceof Error ? `error ${reply.message}` : JSON.stringify(reply);
}
