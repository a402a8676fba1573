// @ts-check
/**
 * Keeps the results of hunts in a file outside of the project, so that a hunt of many hours can be
 * stopped and continued. Threads get seeds in blocks. A block counts when it is finished, so an
 * interrupted block runs again, and no seed counts twice. Changed sources begin a new hunt.
 */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

export const blockSize = 50;

/**
 * @typedef {object} Totals
 * @property {number} seeds
 * @property {number} events
 * @property {number} tenures
 * @property {number} cpuSeconds of all threads together
 * @property {number} lostUnfenced
 * @property {number} writtenUnfenced
 * @property {number} lostFenced updates that were lost although their counters were not
 * @property {number} writtenFenced
 * @property {number} refused
 * @property {number} lostWithCounters
 */

/** @typedef {import("../../src/simulator/index.ts").Scenario} Scenario */
/** @typedef {{ seed: number, rule: string, text: string, scenario: Scenario }} Found */

/**
 * @typedef {object} Hunt on one state of the sources
 * @property {string} sources hash of them
 * @property {number} from first seed
 * @property {number} nextBlock every block before this one is finished
 * @property {number[]} finished blocks after that
 * @property {Totals} totals
 * @property {Found[]} found
 */

/** @type {Totals} */
const nothing = {
  seeds: 0,
  events: 0,
  tenures: 0,
  cpuSeconds: 0,
  lostUnfenced: 0,
  writtenUnfenced: 0,
  lostFenced: 0,
  writtenFenced: 0,
  refused: 0,
  lostWithCounters: 0,
};

/** Returns totals to add to. @returns {Totals} */
export function emptyTotals() {
  return { ...nothing };
}

/** @param {Totals} totals @param {Totals} more */
export function addTotals(totals, more) {
  const names = /** @type {(keyof Totals)[]} */ (Object.keys(nothing));
  for (const name of names) totals[name] += more[name];
}

/** Returns the path at which hunts are kept by default. */
export function defaultStatePath() {
  const folder = process.env["XDG_STATE_HOME"] ?? join(homedir(), ".local", "state");
  return join(folder, "holdfast", "hunts.json");
}

export class HuntState {
  #path;
  /** @type {Hunt[]} */
  #hunts;
  /** @type {Hunt} */
  #hunt;
  /** Blocks that threads are working on. @type {Set<number>} */
  #underWay = new Set();

  /**
   * @param {string} path
   * @param {string} sources
   * @param {number | undefined} from first seed; begins anew if given
   */
  constructor(path, sources, from) {
    this.#path = path;
    this.#hunts = readHunts(path);
    const known = this.#hunts.find((hunt) => hunt.sources === sources);
    if (known !== undefined && from === undefined) {
      this.#hunt = known;
      return;
    }
    const first = from ?? Math.floor(Math.random() * 2 ** 40);
    const totals = emptyTotals();
    this.#hunt = { sources, from: first, nextBlock: 0, finished: [], totals, found: [] };
    this.#hunts = [this.#hunt, ...this.#hunts.filter((hunt) => hunt.sources !== sources)];
  }

  get hunt() {
    return this.#hunt;
  }

  /** Returns the number of the next block that no thread has, with its first seed. */
  take() {
    const { nextBlock, finished, from } = this.#hunt;
    let block = nextBlock;
    while (finished.includes(block) || this.#underWay.has(block)) block += 1;
    this.#underWay.add(block);
    return { block, seed: from + block * blockSize };
  }

  /** @param {number} block @param {Totals} totals @param {readonly Found[]} found */
  finish(block, totals, found) {
    const hunt = this.#hunt;
    this.#underWay.delete(block);
    hunt.finished.push(block);
    while (hunt.finished.includes(hunt.nextBlock)) {
      hunt.finished.splice(hunt.finished.indexOf(hunt.nextBlock), 1);
      hunt.nextBlock += 1;
    }
    addTotals(hunt.totals, totals);
    hunt.found.push(...found);
    this.save();
  }

  /** Replaces the file as a whole, so that an interrupted hunt leaves a readable one. */
  save() {
    mkdirSync(dirname(this.#path), { recursive: true });
    const draft = `${this.#path}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(this.#hunts, null, 2)}\n`);
    renameSync(draft, this.#path);
  }
}

/** @param {string} path @returns {Hunt[]} */
function readHunts(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return [];
    throw error;
  }
}
