// @ts-check
/**
 * One operation, with its arguments as `_list.lua` has them.
 *
 * @typedef {{ code: string, locks: string[], ttl: string, args: string[] }} Part
 */

const record = "holdfast:node";

/** @param {string} key */
export function counterOf(key) {
  return `holdfast:{${key}}:fence`;
}

/** @param {string} key */
export function queueOf(key) {
  return `holdfast:{${key}}:waiters`;
}

/**
 * Returns the number of keys, the keys and the arguments of a script that runs these operations.
 *
 * @param {string} script @param {readonly Part[]} parts @param {readonly string[]} deployment
 */
export function listOf(script, parts, deployment) {
  const locks = parts.flatMap((part) => part.locks);
  const queues = parts.flatMap((part) => (part.code === "T" ? [] : part.locks.map(queueOf)));
  const count = String(locks.length);
  if (script === "fenced") {
    const keys = [record, ...locks, ...queues];
    return [String(keys.length), ...keys, ...deployment, count, ...runsOf(parts)];
  }
  if (script === "plain") {
    const keys = [...locks, ...queues];
    return [String(keys.length), ...keys, count, "", ...runsOf(parts)];
  }
  const gated = parts.filter(({ code }) => code !== "R" && code !== "P");
  const counters = gated.flatMap((part) => part.locks.map(counterOf));
  const keys = [...locks, ...counters, ...queues];
  const head = [count, String(counters.length), "86400000"];
  return [String(keys.length), ...keys, ...head, ...runsOf(parts)];
}

/** Joins adjacent operations of one kind to a run. @param {readonly Part[]} parts */
function runsOf(parts) {
  /** @type {{ head: string[], args: string[], count: number }[]} */
  const runs = [];
  for (const { code, locks, ttl, args } of parts) {
    const head = [code, String(locks.length), ttl];
    const run = runs.at(-1);
    if (run !== undefined && run.head.join() === head.join()) {
      run.count += 1;
      run.args.push(...args);
    } else {
      runs.push({ head, args: [...args], count: 1 });
    }
  }
  return runs.flatMap(({ head: [code = "", locks = "", ttl = ""], args, count }) => {
    return [`${code} ${count} ${locks}`, ttl, ...args];
  });
}
