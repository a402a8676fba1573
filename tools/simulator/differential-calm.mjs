// @ts-check
/**
 * Draws commands that find a lock as their sender left it, as most commands of a real client do: a
 * free lock is acquired, and a held one is renewed or released by its holder. Random commands
 * hardly ever fit the state of a lock, so the short ways of the scripts would hardly ever decide.
 */

import { listOf } from "./differential-runs.mjs";

/** @typedef {import("../../src/simulator/node/server.ts").SimulatedServer} SimulatedServer */
/** @typedef {import("../../src/simulator/node/scripts.ts").KnownScript} KnownScript */
/** @typedef {import("../../src/simulator/seeded-random.ts").SeededRandom} SeededRandom */
/** @typedef {import("./differential-runs.mjs").Part} Part */
/** @typedef {{ key: string, value: string | undefined, owner: string, fence: string }} Lock */

const record = "holdfast:node";
const kinds = ["fenced", "fenced", "fenced", "plain", "plain", "cluster"];

/**
 * Returns a command, or undefined if the state of the node allows none. All earlier commands have
 * to be executed before.
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
  const isPlain = kind === "plain";
  const deployment = kind === "fenced" ? deploymentOf(simulated, random) : [];
  if (deployment === undefined) {
    // Deletes the record, so that the next command can create it.
    return random.chance(0.3) ? { kind: "calm DEL", command: ["DEL", record] } : undefined;
  }
  const isLone = random.chance(0.5);
  const chosen = isLone ? [random.pick(keys)] : keys.filter(() => random.chance(0.5));
  const locks = chosen.flatMap((key) => lockAt(simulated, key, isPlain) ?? []);
  const parts = locks.map((lock) => partOf(lock, random, String(random.pick(ttls)), kind));
  if (parts.length === 0) return undefined;
  const head = random.chance(0.4) ? ["EVALSHA", script.sha] : ["EVAL", script.source];
  const command = [...head, ...listOf(kind, parts, deployment)];
  return { kind: `calm ${kind}${isLone ? " one" : ""}`, command };
}

/**
 * @param {Lock} lock
 * @param {SeededRandom} random
 * @param {string} ttl
 * @param {string} kind of script
 * @returns {Part}
 */
function partOf({ key, value, owner, fence }, random, ttl, kind) {
  const locks = [key];
  const shards = kind === "fenced" ? [String(random.integer(0, 3))] : [];
  if (value === undefined) {
    // A waiter is granted at once if no other call waits. The time decides about all other entries.
    const waits = random.chance(0.1);
    const terms = kind === "plain" ? [] : [fenceFrom(random), ...shards];
    const place = waits ? ["1000", "m1-w1", String(random.pick([1, 2, 32]))] : [];
    const args = [ownerOf(random), ...terms, ...place];
    return { code: waits ? "W" : "A", locks, ttl, args };
  }
  if (random.chance(0.4)) return { code: "R", locks, ttl: "0", args: [value] };
  // Some values are behind the fence of their lease, and have to be raised.
  const raised = `${owner}|${Number(fence) + 7}`;
  const whole = kind !== "plain" && random.chance(0.2) ? raised : value;
  return { code: "T", locks, ttl: random.chance(0.2) ? "0" : ttl, args: [whole, ...shards] };
}

/**
 * Returns settings with which the node may vote, as its record is now; undefined if there are none.
 *
 * @param {SimulatedServer} server
 * @param {SeededRandom} random
 */
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

/**
 * Returns the lock at a key; undefined if its value is not that of a lease.
 *
 * @param {SimulatedServer} server
 * @param {string} key
 * @param {boolean} isPlain
 * @returns {Lock | undefined}
 */
function lockAt(server, key, isPlain) {
  const value = server.data.textOf(key);
  if (value === undefined) return { key, value, owner: "", fence: "" };
  const [whole, owner = "", fence = ""] = /^(.+)\|([1-9]\d*)$/.exec(value) ?? [];
  if (!isPlain && whole === undefined) return undefined;
  return { key, value, owner, fence };
}

/** @param {SeededRandom} random */
function ownerOf(random) {
  return random.pick(["o1", "o2", "o3", "o1-1"]);
}

let proposal = 1_000;

/** Returns a proposal, mostly greater than all before. @param {SeededRandom} random */
function fenceFrom(random) {
  proposal += random.integer(0, 3);
  // A low proposal is below the counters, or below the floor of a node that was admitted.
  const isLow = random.chance(0.3);
  return String(isLow ? random.integer(1, 100) : proposal - random.pick([0, 0, 1, 5]));
}
