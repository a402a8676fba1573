import { ttlMinMs } from "../core/options.ts";
import type { Fault, Scenario, StorePlan } from "./scenario.ts";
import { SeededRandom } from "./seeded-random.ts";
import { faultsOf, type Temper } from "./swarm-faults.ts";

const tempers: readonly Temper[] = [
  "timed",
  "timed",
  "untimed",
  "storm",
  "lossy",
  "rolling",
  "straddling",
  "stepping",
  "mixed",
];

/**
 * Largest number of loops per client, except in worlds made by `crowded`. A loop acquires, works
 * and releases, again and again.
 */
const loopsMax = 3;

/**
 * Draws a complete scenario from a seed: sizes, clocks, network, options, work and faults. A swarm
 * of seeds then covers many kinds of worlds. The temper decides which faults a world gets.
 */
export function scenarioOf(seed: number): Scenario {
  const random = new SeededRandom(`swarm ${seed}`);
  const temper = random.pick(tempers);
  const isLosing = temper === "rolling" || temper === "straddling";
  const isFenceHunt = temper === "untimed" || temper === "storm" || isLosing;
  const nodeCount = random.pick(nodeCountsOf(temper));
  const isOld = random.chance(isLosing ? 0.3 : 0.15);
  const isShort = isLosing || temper === "stepping";
  const scaleMs = random.pick(isShort ? [40, 100, 300] : [40, 100, 300, 1_000, 4_000]);
  const ttlMs = Math.round(scaleMs * random.between(0.7, 1.5));
  const store = storeOf(random, temper, nodeCount, ttlMs);
  // Each clock uses less than half of the drift allowance, so two clocks differ by less than it.
  const rateSpread = store.driftFactor * 0.45;
  const skewMs = random.pick(skewsOf(temper));
  const clientCount = random.integer(temper === "storm" ? 3 : 2, 4);
  const quarantineMs = store.maxTtlMs * 1.3 + store.driftFixedMs;
  const safetyMs = isLosing
    ? (quarantineMs + 2 * ttlMs) * random.integer(3, 7)
    : ttlMs * random.integer(6, 25);
  const sizes = { nodeCount, clientCount, safetyMs, ttlMs, quarantineMs };
  const scenario: Scenario = {
    seed,
    nodes: Array.from({ length: nodeCount }, () => ({
      version: isOld || random.chance(0.05) ? "6.2.14" : "7.0.15",
      rate: 1 + random.pick([-1, 0, 1, random.between(-1, 1)]) * rateSpread,
      skewMs: random.between(-2_000, 2_000),
      uptimeMs: isFenceHunt || random.chance(0.8) ? 86_400_000 : random.between(0, quarantineMs),
    })),
    clients: Array.from({ length: clientCount }, () => ({
      rate: 1 + random.pick([-1, 0, 1, random.between(-1, 1)]) * rateSpread,
      wallSkewMs: random.between(-skewMs, skewMs),
    })),
    link: linkOf(random, temper, ttlMs, store),
    store,
    work: workOf(random, temper, ttlMs),
    faults: faultsOf(random, temper, sizes),
    safetyMs,
    // When the faults end, each loop may hold a lease for 8 TTLs. It may hold one more lease for
    // 8 TTLs before its client stops.
    livenessMs: 4 * quarantineMs + clientCount * loopsMax * 2 * 8 * ttlMs + 40_000,
  };
  return withEndings(crowded(withLives(scenario)));
}

/**
 * In some worlds, gives each acquire and extend its own TTL. An extend may then request a longer
 * TTL than the acquire, or a shorter TTL than the time left. Uses its own random stream, so that
 * the rest of the scenario does not change.
 */
function withLives(scenario: Scenario): Scenario {
  const random = new SeededRandom(`lives ${scenario.seed}`);
  if (!random.chance(0.4)) return scenario;
  const { work, store } = scenario;
  const shares = [random.between(0.25, 0.5), random.between(0.5, 0.9), 1];
  const lives = shares.map((share) => Math.max(ttlMinMs, Math.round(work.ttlMs * share)));
  if (store.maxTtlMs > work.ttlMs) lives.push(random.integer(work.ttlMs, store.maxTtlMs));
  const extendChance = Math.max(work.extendChance, random.pick([0.2, 0.5]));
  return { ...scenario, work: { ...work, lives, extendChance } };
}

/**
 * In some worlds, lets many tasks of each client need the same lock for a short time, so that tasks
 * of one process hand the lock over. Uses its own random stream, so that the other worlds do not
 * change.
 */
function crowded(scenario: Scenario): Scenario {
  const random = new SeededRandom(`crowd ${scenario.seed}`);
  if (!random.chance(0.2)) return scenario;
  const { work, livenessMs } = scenario;
  const loops = random.integer(3, 6);
  return {
    ...scenario,
    work: {
      ...work,
      resources: ["a"],
      loops,
      thinkMs: random.pick([0.5, 5, 50]),
      holdMs: random.pick([0.2, 1, 5]),
    },
    livenessMs: livenessMs * Math.ceil(loops / loopsMax),
  };
}

/**
 * In some worlds, lets managers close with calls under way, or aborts calls in the turn of their
 * grant. Uses its own random stream, so that the other worlds do not change.
 */
function withEndings(scenario: Scenario): Scenario {
  const random = new SeededRandom(`endings ${scenario.seed}`);
  const { safetyMs, clients, work } = scenario;
  const quits = random.chance(0.15)
    ? Array.from({ length: random.integer(1, 5) }, (): Fault => {
        // What a manager leaves at the end of the phase is still there when all keys are checked.
        const atMs = safetyMs * random.between(random.pick([0, 0.9]), 1);
        const client = random.integer(0, clients.length - 1);
        return { kind: "quit", atMs, forMs: random.between(0, work.ttlMs), client };
      })
    : [];
  const abortAtGrantChance = random.chance(0.15) ? random.pick([0.05, 0.3]) : undefined;
  return {
    ...scenario,
    faults: [...scenario.faults, ...quits].sort((a, b) => a.atMs - b.atMs),
    work: abortAtGrantChance === undefined ? work : { ...work, abortAtGrantChance },
  };
}

function nodeCountsOf(temper: Temper): readonly number[] {
  if (temper === "straddling") return [3];
  if (temper === "stepping") return [3, 3, 5];
  if (temper === "storm" || temper === "untimed") return [3, 3, 3, 4, 5];
  return temper === "rolling" ? [1, 3, 3, 3, 5] : [1, 1, 3, 3, 3, 4, 5, 5];
}

/**
 * Returns the clock skews to choose from. With large skews, most fences that clients suggest are
 * smaller than the counters. Fences then grow by one per grant.
 */
function skewsOf(temper: Temper): readonly number[] {
  if (temper === "storm" || temper === "rolling" || temper === "straddling") return [3_600_000];
  return temper === "untimed" ? [5, 200, 3_600_000, 3_600_000] : [0, 0.5, 5, 200, 3_600_000];
}

function storeOf(
  random: SeededRandom,
  temper: Temper,
  nodeCount: number,
  ttlMs: number,
): StorePlan {
  const isLosing = temper === "rolling" || temper === "straddling";
  const isFenced = temper === "untimed" || temper === "storm" || temper === "stepping" || isLosing;
  const fencing = isFenced || random.chance(0.75);
  const strict = fencing && (isLosing || random.chance(nodeCount >= 3 ? 0.8 : 0.5));
  const isPatient =
    temper === "untimed" || temper === "storm" || temper === "straddling" || random.chance(0.4);
  return {
    fencing,
    admission: strict ? "strict" : "off",
    maxTtlMs: Math.ceil(ttlMs * random.pick([1, 1, 1.5, 3])),
    driftFactor: random.pick([0.01, 0.01, 0.05, 0.2]),
    driftFixedMs: 2,
    ...(isPatient ? { nodeTimeoutMs: Math.ceil(ttlMs * random.between(0.1, 0.6)) } : {}),
  };
}

/**
 * Returns the network plan. Its delays are proportional to the node timeout, because with longer
 * delays most worlds would grant no lease.
 */
function linkOf(
  random: SeededRandom,
  temper: Temper,
  ttlMs: number,
  store: StorePlan,
): Scenario["link"] {
  const timeoutMs = store.nodeTimeoutMs ?? Math.max(50, ttlMs * 0.05);
  const resends = random.chance(0.4);
  if (temper === "storm" || temper === "untimed") {
    return {
      delayMs: timeoutMs / random.pick([10, 20]),
      tailChance: random.pick(temper === "storm" ? [0.2, 0.5] : [0.05, 0.2]),
      tailMs: timeoutMs * random.pick([0.2, 0.5]),
      strayChance: random.pick([0.3, 0.9]),
      strayMs: ttlMs * random.pick([0.05, 0.3]),
      resends,
    };
  }
  return {
    delayMs: timeoutMs / random.pick([3, 10, 30, 100]),
    tailChance: random.pick([0, 0.01, 0.1]),
    tailMs: timeoutMs * random.pick([0.3, 1, 4]),
    strayChance: random.pick([0, 0.3, 0.9]),
    strayMs: ttlMs * random.pick([0.1, 0.5, 1.5]),
    resends,
  };
}

function workOf(random: SeededRandom, temper: Temper, ttlMs: number): Scenario["work"] {
  const isStorm = temper === "storm";
  const isBusy = isStorm || temper === "untimed";
  // In a world whose nodes lose data, an ordinary grant after the loss stores a new fence where the
  // counter was lost, and hides the loss. To keep grants rare, clients hold a lease or pause for
  // long.
  const isLosing = temper === "rolling" || temper === "straddling";
  const isStepping = temper === "stepping";
  // The attempt of a slow client must be in flight when a node loses its data, for a resource that
  // others also need. So clients pause less.
  const isStraddling = temper === "straddling";
  const thinks = isStraddling ? [0.05, 0.2, 1] : isLosing ? [0.1, 1, 5, 10] : [0.02, 0.1, 0.5];
  const holds = isLosing ? [0.02, 0.3] : isStepping ? [0.4, 1] : [0.02, 0.1, 0.4, 1];
  return {
    resources: ["a", "b", "c"].slice(
      0,
      random.pick(isBusy || isStraddling ? [1, 1, 2] : [1, 1, 2, 3]),
    ),
    loops: random.pick(isStepping ? [2, 3] : isStorm ? [1, 2, 2] : [1, 1, 2]),
    ttlMs,
    waitMs: ttlMs * random.between(0.5, 4),
    thinkMs: ttlMs * random.pick(isBusy ? [0.01, 0.1] : thinks),
    holdMs: ttlMs * random.pick(isBusy ? [0.005, 0.1] : holds),
    minRetryMs: Math.max(1, Math.round(ttlMs / 50)),
    maxRetryMs: Math.max(5, Math.round(ttlMs / (isStorm ? 15 : 5))),
    renewChance: random.pick(isStepping ? [1] : [0, 0.5, 1]),
    severalChance: random.pick([0, 0.2, 0.5]),
    abandonChance: random.pick([0, 0.1]),
    abortChance: random.pick([0, 0.2]),
    extendChance: random.pick([0, 0.1, 0.5]),
    proveChance: random.pick([0, 0.1]),
    lateWriteChance: random.pick([0, 0.1]),
  };
}
