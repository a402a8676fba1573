// @ts-check
/**
 * Commands that find things as their sender left them, which most commands of a real client do:
 * a free lock is acquired, one that is held is renewed, touched or given back by its holder. Drawn
 * at random, they hardly ever are so, and the short ways of the scripts hardly ever decide.
 */

import { runsOf } from "./differential-runs.mjs";

/** @typedef {import("../../src/simulator/node/server.ts").SimulatedServer} SimulatedServer */
/** @typedef {import("../../src/simulator/node/scripts.ts").KnownScript} KnownScript */
/** @typedef {import("../../src/simulator/seeded-random.ts").SeededRandom} SeededRandom */
/** @typedef {import("./differential-runs.mjs").Part} Part */
/** @typedef {{ key: string, value: string | undefined, owner: string, fence: string }} Lock */

const record = "holdfast:node";
const kinds = [
  "batch",
  "batch",
  "plain-batch",
  "acquire",
  "acquire",
  "acquire",
  "acquire",
  "acquire",
  "release",
  "renew",
  "renew",
  "plain-renew",
  "touch",
  "plain-touch",
  "cluster-touch",
];
const recorded = new Set(["batch", "acquire", "renew", "touch"]);
const bare = new Set(["plain-batch", "release", "plain-renew", "plain-touch"]);

/**
 * Returns a command, or nothing if the node is in no state for one. All commands before it have to
 * be executed.
 *
 * @param {object} sides
 * @param {SimulatedServer} sides.simulated
 * @param {readonly KnownScript[]} sides.scripts
 * @param {SeededRandom} sides.random
 * @param {readonly string[]} keys
 * @param {readonly number[]} ttls
 * @returns {{ kind: string, command: string[] } | undefined}
 */
export function drawCalm({ simulated, scripts, random }, keys, ttls) {
  const kind = random.pick(kinds);
  const script = scripts.find(({ name }) => name === kind);
  if (script === undefined) throw new Error(`there is no script ${kind}`);
  const isPlain = bare.has(kind);
  const deployment = recorded.has(kind) ? deploymentOf(simulated, random) : [];
  if (deployment === undefined) {
    // Begins anew with a record that any client may make.
    return random.chance(0.3) ? { kind: "calm DEL", command: ["DEL", record] } : undefined;
  }
  const chosen = keys.filter(() => random.chance(0.5));
  const locks = chosen.flatMap((key) => lockAt(simulated, key, isPlain) ?? []);
  const ttl = () => String(random.pick(ttls));
  const args = argumentsOf(kind, { locks, deployment, random, ttl, isPlain });
  if (args === undefined) return undefined;
  const head = random.chance(0.4) ? ["EVALSHA", script.sha] : ["EVAL", script.source];
  return { kind: `calm ${kind}`, command: [...head, ...args] };
}

/**
 * @param {string} kind
 * @param {{ locks: readonly Lock[], deployment: readonly string[], random: SeededRandom, ttl: () => string, isPlain: boolean }} drawn
 * @returns {string[] | undefined}
 */
function argumentsOf(kind, { locks, deployment, random, ttl, isPlain }) {
  const held = locks.filter(({ value }) => value !== undefined);
  const free = locks.find(({ value }) => value === undefined);
  switch (kind) {
    case "acquire": {
      if (free === undefined) return undefined;
      const names = ["3", record, free.key, queueOf(free.key)];
      return [...names, ...deployment, ownerOf(random), ttl(), ...fencesOf(random, 1)];
    }
    case "release": {
      const [lock] = held;
      return lock === undefined ? undefined : ["2", lock.key, queueOf(lock.key), lock.value ?? ""];
    }
    case "renew":
    case "plain-renew": {
      if (held.length === 0) return undefined;
      const names = [...(isPlain ? [] : [record]), ...held.map(({ key }) => key)];
      // One that is behind is to be touched first.
      const values = held.map((lock) => {
        return random.chance(0.2) && !isPlain
          ? `${lock.owner}|${raised(lock)}`
          : (lock.value ?? "");
      });
      return [String(names.length), ...names, ...deployment, ttl(), ...values];
    }
    case "touch":
    case "plain-touch":
    case "cluster-touch": {
      const [lock] = held;
      if (lock === undefined) return undefined;
      if (isPlain) return ["1", lock.key, lock.value ?? "", ttl()];
      const fence = random.chance(0.3) ? raised(lock) : lock.fence;
      if (kind === "touch") {
        return ["2", record, lock.key, ...deployment, lock.owner, ttl(), fence, "3"];
      }
      const names = ["2", lock.key, `holdfast:{${lock.key}}:fence`];
      return [...names, lock.owner, ttl(), fence, "86400000"];
    }
    default: {
      const parts = locks.map((lock) => partOf(lock, random, ttl(), isPlain));
      if (parts.length === 0) return undefined;
      const names = parts.flatMap((part) => part.locks);
      const all = [...(isPlain ? [] : [record]), ...names, ...parts.flatMap((part) => part.queues)];
      return [String(all.length), ...all, ...deployment, String(names.length), ...runsOf(parts)];
    }
  }
}

/** @param {Lock} lock @param {SeededRandom} random @param {string} ttl @param {boolean} isPlain @returns {Part} */
function partOf({ key, value, owner, fence }, random, ttl, isPlain) {
  const queues = [queueOf(key)];
  if (value === undefined) {
    // A waiter is granted at once where nobody waits; moments decide about all other places.
    const waits = random.chance(0.1);
    const [proposal = "", shard = ""] = fencesOf(random, 1);
    const terms = [ownerOf(random), ...(isPlain ? [] : [proposal, shard])];
    const reserved = isPlain ? [] : [String(random.pick([1, 2, 32]))];
    const place = waits ? ["1000", "m1-w1", ...reserved] : [];
    return { code: waits ? "W" : "A", locks: [key], queues, ttl, args: [...terms, ...place] };
  }
  if (random.chance(0.4)) return { code: "R", locks: [key], queues, ttl: "0", args: [value] };
  const shard = String(random.integer(0, 3));
  const args = isPlain ? [value] : [owner, fence, shard];
  return { code: "T", locks: [key], queues: [], ttl: random.chance(0.2) ? "0" : ttl, args };
}

/** Under which the node may vote, as its record stands; else nothing. @param {SimulatedServer} server @param {SeededRandom} random */
function deploymentOf(server, random) {
  const kept = hashAt(server);
  if (kept === undefined) return ["1", random.pick(["off", "strict"]), "1:crc16:1024", "80000"];
  if (kept.get("rid") === undefined || kept.get("fmt") !== "1:crc16:1024") return undefined;
  const st = kept.get("st");
  if (st !== "A" && (st !== undefined || kept.get("max") !== undefined)) return undefined;
  const verify = random.pick(["0", "1"]);
  return [verify, st === "A" ? "strict" : "off", "1:crc16:1024", "80000"];
}

/** @param {SimulatedServer} server */
function hashAt(server) {
  try {
    return server.data.hash(record);
  } catch {
    return undefined;
  }
}

/** Nothing if it is held by what is no owner. @param {SimulatedServer} server @param {string} key @param {boolean} isPlain @returns {Lock | undefined} */
function lockAt(server, key, isPlain) {
  const value = server.data.textOf(key);
  if (value === undefined) return { key, value, owner: "", fence: "" };
  const [whole, owner = "", fence = ""] = /^(.+)\|([1-9]\d*)$/.exec(value) ?? [];
  if (!isPlain && whole === undefined) return undefined;
  return { key, value, owner, fence };
}

/** @param {string} key */
function queueOf(key) {
  return `holdfast:{${key}}:waiters`;
}

/** @param {SeededRandom} random */
function ownerOf(random) {
  return random.pick(["o1", "o2", "o3", "o1-1"]);
}

/** @param {Lock} lock */
function raised({ fence }) {
  return String(Number(fence) + 7);
}

let proposal = 1_000;

/** A proposal, mostly greater than all before, and a shard for each lock. @param {SeededRandom} random @param {number} count */
function fencesOf(random, count) {
  proposal += random.integer(0, 3);
  const shards = Array.from({ length: count }, () => String(random.integer(0, 3)));
  // A low one is below the counters, or below the floor of a node that was admitted.
  const low = random.chance(0.3) ? random.integer(1, 100) : proposal - random.pick([0, 0, 1, 5]);
  return [String(low), ...shards];
}
