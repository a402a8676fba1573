// @ts-check
/** The setting of the workloads: servers, processes, rounds in random order, and results. */

import { startRedisServers } from "../tools/redis/redis-server.mjs";
import { CutError, Worker } from "./crew.mjs";
import { contenderKinds } from "./contenders/list.mjs";

/**
 * @import { Options, Series, Settings } from "./types.ts"
 * @typedef {Awaited<ReturnType<typeof startRedisServers>>} Servers
 * @typedef {"one" | "five" | "spare" | "sick" | "counter"} FleetName
 */

/** @type {Readonly<Record<FleetName, number>>} */
const fleetSizes = { one: 1, five: 5, spare: 1, sick: 5, counter: 1 };
/** Contenders of a quick run, unless others are given. */
const quickOnes = ["floor", "limit", "fenced", "unfenced", "redis-semaphore", "redlock5", "verrou"];
// After this time a quick run skips the remaining measurements, and reports them.
const quickMaxMs = 150_000;
// Opening Holdfast takes this long at most, with the quarantine of fresh servers.
const openBoundMs = 75_000;

export class Bench {
  /** @type {Map<FleetName, Promise<Servers>>} */
  #fleets = new Map();
  /** @type {Series[]} */
  series = [];
  /** @type {string[]} */
  notes = [];
  #beganMs = performance.now();

  /** @param {Options} options */
  constructor(options) {
    this.options = options;
  }

  /**
   * True if a quick run has no time left for `what`, which is then reported. @param {string} what
   */
  isLate(what) {
    if (!this.options.quick || performance.now() - this.#beganMs < quickMaxMs) return false;
    this.note(`${what}: left out or cut short, because the time of a quick run was over`);
    return true;
  }

  /**
   * Time to measure for, in ms, shorter in a quick run. @param {number} full @param {number} quick
   */
  timeMs(full, quick) {
    return Math.round((this.options.quick ? quick : full) * this.options.scale);
  }

  /** @param {FleetName} name */
  fleet(name) {
    let fleet = this.#fleets.get(name);
    if (fleet === undefined) {
      fleet = startRedisServers(fleetSizes[name]);
      this.#fleets.set(name, fleet);
    }
    return fleet;
  }

  /** @param {FleetName} name @returns {Promise<number[]>} */
  async ports(name) {
    return (await this.fleet(name)).map(({ port }) => port);
  }

  async close() {
    for (const fleet of this.#fleets.values()) {
      for (const server of await fleet) await server.stop();
    }
  }

  /**
   * Returns the wanted contenders that support this number of nodes.
   *
   * @param {1 | 5} nodes
   * @param {readonly string[]} [among]
   */
  contenders(nodes, among) {
    const { contenders, peers, quick } = this.options;
    const wanted = contenders.length === 0 && quick ? quickOnes : contenders;
    return contenderKinds
      .filter((kind) => kind.nodes.includes(nodes))
      .filter(({ id }) => among === undefined || among.includes(id))
      .filter(({ id }) => wanted.length === 0 || wanted.includes(id))
      .filter(({ peer }) => peers || !peer)
      .map(({ id }) => id);
  }

  /**
   * @param {string} workload
   * @param {string} label
   * @param {number} nodes
   * @param {string} contender
   * @returns {Series}
   */
  seriesOf(workload, label, nodes, contender) {
    const known = this.series.find(
      (each) =>
        each.workload === workload &&
        each.label === label &&
        each.nodes === nodes &&
        each.contender === contender,
    );
    if (known !== undefined) return known;
    const made = { workload, label, nodes, contender, values: {}, problems: {} };
    this.series.push(made);
    return made;
  }

  /** @param {string} text */
  log(text) {
    process.stdout.write(`${text}\n`);
  }

  /** @param {string} text */
  note(text) {
    if (!this.notes.includes(text)) this.notes.push(text);
  }
}

/**
 * @param {Series} series
 * @param {number} round
 * @param {Readonly<Record<string, number | undefined>>} values
 */
export function record(series, round, values) {
  for (const [metric, value] of Object.entries(values)) {
    const list = (series.values[metric] ??= []);
    // A round that was cut stays undefined.
    while (list.length < round) list.push(undefined);
    list[round] = value;
  }
}

/** @param {Series} series @param {Readonly<Record<string, number>>} failures */
export function recordProblems(series, failures) {
  for (const [kind, count] of Object.entries(failures)) {
    series.problems[kind] = (series.problems[kind] ?? 0) + count;
  }
}

/** @param {Series} series @param {unknown} error */
export function recordCut(series, error) {
  const lines = (error instanceof Error ? error.message : String(error)).split("\n");
  recordProblems(series, { [(lines[0] ?? "").slice(0, 160)]: 1 });
}

/**
 * Opens the processes of one contender with the same settings.
 *
 * @param {string} contender
 * @param {number} count
 * @param {Settings} settings
 * @param {readonly string[]} [flags]
 */
export async function openWorkers(contender, count, settings, flags) {
  const workers = Array.from({ length: count }, () => new Worker(contender, flags));
  try {
    await Promise.all(workers.map((worker) => worker.ask("open", settings, openBoundMs)));
  } catch (error) {
    await endWorkers(workers);
    throw error;
  }
  return workers;
}

/** @param {readonly Worker[]} workers */
export async function endWorkers(workers) {
  await Promise.all(workers.map((worker) => worker.end()));
}

/**
 * Opens all contenders, then runs each once per round, in a new random order each time. A
 * contender that fails to open, is cut or dies is reported, and started again for the next round.
 * The rounds that `offRounds` returns are run again, at most as many as there are rounds. Resolves
 * with the number of rounds that were run again.
 *
 * @param {Bench} bench
 * @param {{
 *   contenders: readonly string[], rounds: number, seriesOf: (contender: string) => Series,
 *   open: (contender: string) => Promise<Worker[]>,
 *   warmUp?: (contender: string, workers: readonly Worker[]) => Promise<void>,
 *   turn: (contender: string, workers: readonly Worker[], round: number) => Promise<void>,
 *   offRounds?: () => readonly number[],
 * }} plan
 */
export async function takeTurns(
  bench,
  { contenders, rounds, seriesOf, open, warmUp, turn, offRounds },
) {
  /** @type {Map<string, Worker[]>} */
  const crews = new Map();
  /** @type {Map<string, number>} */
  const cuts = new Map();
  try {
    const order = Array.from({ length: rounds }, (_, round) => round);
    for (let turns = 0; turns < 2 * rounds; turns += 1) {
      const round = order.shift() ?? offRounds?.()[0];
      if (round === undefined) return turns - rounds;
      for (const contender of shuffled(contenders)) {
        // Two cuts are enough: a third would only take minutes.
        if ((cuts.get(contender) ?? 0) >= 2) continue;
        if (bench.isLate(seriesOf(contender).workload)) return Math.max(0, turns - rounds);
        try {
          let workers = crews.get(contender);
          if (workers === undefined) {
            workers = await open(contender);
            crews.set(contender, workers);
            await warmUp?.(contender, workers);
          }
          await turn(contender, workers, round);
        } catch (error) {
          recordCut(seriesOf(contender), error);
          cuts.set(contender, (cuts.get(contender) ?? 0) + 1);
          const workers = crews.get(contender) ?? [];
          crews.delete(contender);
          // A process that does not answer cannot be closed in an orderly way either.
          if (error instanceof CutError) await Promise.all(workers.map((each) => each.kill()));
          else await endWorkers(workers);
        }
      }
    }
    return rounds;
  } finally {
    for (const workers of crews.values()) await endWorkers(workers);
  }
}

/** @template T @param {readonly T[]} list */
export function shuffled(list) {
  return list
    .map((value) => ({ value, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
