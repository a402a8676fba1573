// @ts-check
/**
 * Counts which way decided inside the scripts that have a short one. A comparison of scripts shows
 * little about a way that hardly ever decides.
 */

/**
 * `fresh` is the short way of a waiter that asks again.
 *
 * @typedef {{ short: number, long: number, fresh: number }} Ways
 */

/** Statements before which the count stands: each has to occur exactly once in a script. */
const places = /** @type {const} */ ({
  acquire: {
    short: "call('HSET', KEYS[1], shard, fence)\n",
    long: "local owner, ttl = ARGV[5], ARGV[6]\n",
  },
  release: {
    short: "return call('DEL', KEYS[1]) == 1",
    long: "local locks, deleted = #KEYS / 2, 0\n",
  },
  batch: {
    short: "table.insert(replies, 1, 'S' .. by)\nreturn replies\nend",
    long: "local queued = false\n",
    fresh: "local by, left = strict and string.sub(rid, 1, 12) or '-', call('PTTL', KEYS[2])\n",
  },
  "plain-batch": {
    short: "return replies end\nreplies = {}",
    long: "local queued = false\n",
    fresh: "local left = redis.call('PTTL', KEYS[1])\n",
  },
  renew: { short: "verdicts[n] = 'K'\n", long: "verdicts[n] = verdict_on(" },
  "plain-renew": { short: "verdicts[n] = 'K'\n", long: "verdicts[n] = 'N'\n" },
});

/** In another database, so that it is no key of the test's. A flush has to be one of database 0. */
const countsDatabase = "1";
const countsKey = "ways";

/**
 * Returns the source with the counts in it, or unchanged if the script has no short way.
 *
 * @param {string} name @param {string} source
 */
export function withCountedWays(name, source) {
  const own = Object.entries(places).find(([script]) => script === name)?.[1];
  if (own === undefined) return source;
  let text = source;
  for (const [way, place] of Object.entries(own)) {
    if (text.split(place).length !== 2) {
      throw new Error(`${name}.lua has not exactly one place that reads\n${place}`);
    }
    const field = `${name} ${way}`;
    const count = [
      `redis.call('SELECT', '${countsDatabase}')`,
      `redis.call('HINCRBY', '${countsKey}', '${field}', 1)`,
      `redis.call('SELECT', '0')`,
    ].join(" ");
    text = text.replace(place, () => `${count} ${place}`);
  }
  return text;
}

/** Returns, as EVAL takes it, what gives the counts and begins anew. */
export const countsTaken = Object.freeze([
  "EVAL",
  `redis.call('SELECT', '${countsDatabase}')
  local counts = redis.call('HGETALL', '${countsKey}')
  redis.call('DEL', '${countsKey}')
  redis.call('SELECT', '0')
  return counts`,
  "0",
]);

/** @param {unknown} reply to `countsTaken` @returns {Map<string, Ways>} by script */
export function waysOf(reply) {
  const words = Array.isArray(reply) ? reply.map(String) : [];
  /** @type {Map<string, Ways>} */
  const ways = new Map();
  for (let index = 0; index + 1 < words.length; index += 2) {
    const [script = "", way] = (words[index] ?? "").split(" ");
    const own = ways.get(script) ?? { short: 0, long: 0, fresh: 0 };
    const count = Number(words[index + 1]);
    if (way === "short" || way === "long" || way === "fresh") own[way] = count;
    ways.set(script, own);
  }
  return ways;
}
