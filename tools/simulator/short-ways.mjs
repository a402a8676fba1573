// @ts-check
/**
 * Counts how often the short ways inside a script decided, and how often the engine. A comparison
 * of scripts proves little about a way that hardly ever decides.
 */

/**
 * Number of decisions of each way: `one` and `touch` (an operation on one lock, as its sender expects),
 * `held` (one acquire that is refused), `usual` (a list, as its sender expects), `engine`.
 *
 * @typedef {Map<string, number>} Ways
 */

/** Statements in front of which a count is inserted. Each occurs exactly once in its script. */
const places = /** @type {const} */ ({
  fenced: {
    one: "call('HSET', KEYS[1], ARGV[10], ARGV[9])\n",
    touch: "line = call('MGET', KEYS[2])[1] == whole and 'K'\n",
    held: "return 'H ' .. call('PTTL', key)",
    usual: "return stamp .. '\\n' .. table.concat(lines, '\\n') end\n",
    engine: "local ops, has_waiter = read_operations(6",
  },
  plain: {
    one: "return call('DEL', KEYS[1]) == 1",
    held: "return 'H ' .. call('PTTL', key)",
    usual: "return stamp .. '\\n' .. table.concat(lines, '\\n') end\n",
    engine: "local now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal ops",
  },
  cluster: {
    one: "call('SET', KEYS[2], ARGV[7], 'PX', retention)\n",
    touch: "return stamp .. '\\nK'",
    engine: "local first_queue = ",
  },
});

/** Differs from the database of the test's keys. A flush must be one of database 0 only. */
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

/** First statements of the short ways. */
const entrances = [
  "if ARGV[5] == '1' and (kind",
  "if not refusal and not has_queues then",
  "if #KEYS == 2 then",
  "if not has_queues then",
  "if ARGV[1] == '1' and (ARGV[4]",
];

/** Returns the source without its short ways: the engine decides. @param {string} source */
export function withoutShortWays(source) {
  let text = source;
  for (const entrance of entrances) {
    text = text.replace(entrance, () => entrance.replace(/^if /, "if false and "));
  }
  if (text === source) throw new Error("the script has no short way");
  return text;
}

/** Command that returns the counts and sets them to 0. */
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
    const own = ways.get(script) ?? new Map();
    ways.set(script, own.set(way ?? "", Number(words[index + 1])));
  }
  return ways;
}
