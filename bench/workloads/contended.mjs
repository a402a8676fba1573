// @ts-check
/** Many tasks and one resource: in one process and in four, with and without time spent inside. */

import { openWorkers, record, recordProblems, takeTurns } from "../bench.mjs";
import { keysLeft } from "../leftovers.mjs";
import { contend } from "./contend.mjs";
import { tunedPollMs } from "./tuning.mjs";

/** @import { Bench } from "../bench.mjs" */

/**
 * @typedef {{ label: string, processes: number, tasksEach: number, thinkMs: number }} Shape
 * @type {readonly Shape[]}
 */
const shapes = [
  { label: "1 × 50, 1 ms", processes: 1, tasksEach: 50, thinkMs: 1 },
  { label: "1 × 50, none", processes: 1, tasksEach: 50, thinkMs: 0 },
  { label: "4 × 10, 1 ms", processes: 4, tasksEach: 10, thinkMs: 1 },
  { label: "4 × 10, none", processes: 4, tasksEach: 10, thinkMs: 0 },
];
const ttlMs = 5_000;
const stuck = "still waiting 5 s after the end: live-lock or starvation, cut";

/** @param {Bench} bench */
export async function contended(bench) {
  const [counterPort] = await bench.ports("counter");
  for (const nodes of bench.options.nodes) {
    const ports = await bench.ports(nodes === 1 ? "one" : "five");
    for (const shape of shapes) {
      if (bench.options.quick && shape.thinkMs === 0) continue;
      await contendedCase(bench, { nodes, ports, shape, counterPort });
    }
  }
}

/**
 * @param {Bench} bench
 * @param {{ nodes: 1 | 5, ports: number[], shape: Shape, counterPort: number | undefined }} given
 */
async function contendedCase(bench, { nodes, ports, shape, counterPort }) {
  const { label, processes, tasksEach } = shape;
  const { quick, contenders } = bench.options;
  // If Redlock 5 live-locks, it takes half a minute until it is cut.
  const slow = quick ? ["unfenced", "redlock5"] : [];
  const left = new Set(["limit", "redis-semaphore-auto", ...slow]);
  const among = bench.contenders(nodes).filter((id) => contenders.includes(id) || !left.has(id));
  const pollMs = await tunedPollMs(bench, { ports, shape, among });
  const title = `contended, N = ${nodes}, ${label} inside`;
  bench.log(`${title}: ${among.length} contenders, raw polling every ${pollMs} ms`);
  bench.note(`${title}: raw polling and peers try again every ${pollMs} ms (± half of it)`);
  const durationMs = bench.timeMs(2_500, 500);
  // Tasks that wait at the end are served afterwards. A library that starves some of them must not
  // be cut for that.
  const waitMs = durationMs + 15_000;
  // With the libraries' default pauses, in the case where the effect is seen quickly.
  const withDefaults =
    nodes === 1 && label === "1 × 50, 1 ms" && !bench.options.quick
      ? among.filter((id) => id.startsWith("red") || id === "verrou").map((id) => `${id}@defaults`)
      : [];
  const settings = (/** @type {string} */ contender) => ({
    ports,
    ttlMs,
    waitMs,
    pollMs: contender.endsWith("@defaults") ? undefined : pollMs,
    renewEveryMs: ttlMs / 3,
    countCommands: true,
  });
  await takeTurns(bench, {
    contenders: [...among, ...withDefaults],
    rounds: bench.options.rounds,
    seriesOf: (contender) => bench.seriesOf("contended", label, nodes, contender),
    open: (contender) => openWorkers(contender.split("@")[0] ?? "", processes, settings(contender)),
    // Also counts the tasks inside, independent of clocks.
    async warmUp(contender, workers) {
      const series = bench.seriesOf("contended", label, nodes, contender);
      const checkMs = bench.timeMs(1_000, 250);
      const name = `${contender}:check`;
      const check = await contend(workers, name, shape, checkMs, counterPort);
      recordProblems(series, problemsOf(check));
      if (check.unfinished === 0) return;
      // A live-lock has figures, too. New connections make the old tasks fail and end.
      recordProblems(series, { [stuck]: 1 });
      await Promise.all(workers.map((each) => each.ask("open", settings(contender), 75_000)));
    },
    async turn(contender, workers, round) {
      const series = bench.seriesOf("contended", label, nodes, contender);
      const name = `${contender}:contended`;
      const seen = await contend(workers, name, shape, durationMs);
      record(series, round, seen.values);
      recordProblems(series, problemsOf(seen));
      if (seen.unfinished > 0) throw new Error(stuck);
      const left = await keysLeft(ports, name);
      if (left > 0) recordProblems(series, { "keys left behind": left });
    },
  });
  bench.note(`contended: TTL ${ttlMs} ms, ${processes * tasksEach} tasks`);
}

/** @param {{ overlaps: number, failures: Record<string, number> }} seen */
function problemsOf({ overlaps, failures }) {
  return overlaps > 0 ? { ...failures, overlaps } : failures;
}
