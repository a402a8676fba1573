// @ts-check
/** @typedef {{ code: string, locks: string[], queues: string[], ttl: string, args: string[] }} Part */

/** What follows one another and is of one kind goes together. @param {readonly Part[]} parts */
export function runsOf(parts) {
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
    return [code, String(count), locks, ttl, ...args];
  });
}
