// @ts-check
/** The heap of a held lease, with renewal. */

import { openWorkers, record, recordProblems, takeTurns } from "../bench.mjs";

/** @import { Bench } from "../bench.mjs" */

/** @param {Bench} bench */
export async function held(bench) {
  const { quick, scale } = bench.options;
  const count = scale < 1 ? 1_000 : quick ? 10_000 : 100_000;
  const ports = await bench.ports("spare");
  const contenders = bench.contenders(1);
  bench.log(`held, N = 1: ${count} leases, ${contenders.length} contenders`);
  await takeTurns(bench, {
    contenders,
    // The heap does not depend on the load of the machine.
    rounds: 1,
    seriesOf: (contender) => bench.seriesOf("held", String(count), 1, contender),
    open: (contender) =>
      openWorkers(
        contender,
        1,
        {
          ports,
          ttlMs: 30_000,
          waitMs: 0,
          pollMs: undefined,
          renewEveryMs: 10_000,
          countCommands: false,
        },
        ["--expose-gc"],
      ),
    async turn(contender, [worker], round) {
      if (worker === undefined) throw new Error("no process");
      const series = bench.seriesOf("held", String(count), 1, contender);
      for (const renewing of [true, false]) {
        const input = { prefix: `${contender}:held`, count, renewing };
        /** @type {{ heapEach: number, elapsedMs: number, failures: Record<string, number> }} */
        const kept = await worker.ask("keep", input, 120_000);
        const perSecond = (count / kept.elapsedMs) * 1_000;
        if (renewing) record(series, round, { heapBytes: kept.heapEach, perSecond });
        else record(series, round, { heapPlainBytes: kept.heapEach });
        recordProblems(series, kept.failures);
        /** @type {{ failures: Record<string, number> }} */
        const dropped = await worker.ask("drop", undefined, 120_000);
        recordProblems(series, dropped.failures);
      }
      // Ends the process, because the other contenders do not need its heap.
      await worker.end();
    },
  });
  bench.note(
    "held: heap after garbage collection, names not counted; with renewal on, by a timer of the " +
      "benchmark where the library has none",
  );
}
