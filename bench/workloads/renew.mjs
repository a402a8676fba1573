// @ts-check
/**
 * Many leases that are renewed: the cost of a renewal for the client, and whether a lease is lost.
 */

import { openWorkers, record, recordProblems, takeTurns } from "../bench.mjs";
import { countKeys, keysLeft } from "../leftovers.mjs";

/** @import { Bench } from "../bench.mjs" */

const ttlMs = 9_000;
const renewEveryMs = 3_000;

/**
 * Returns the renewal interval, which one library does not let us set. @param {string} contender
 */
function renewedEveryMs(contender) {
  return contender === "redlock-universal" ? 0.8 * ttlMs : renewEveryMs;
}

/** @param {Bench} bench */
export async function renew(bench) {
  const { quick, scale } = bench.options;
  const count = quick || scale < 1 ? 1_000 : 10_000;
  const rounds = Math.min(bench.options.rounds, quick ? 1 : 3);
  const few = quick ? ["floor", "fenced"] : undefined;
  for (const nodes of bench.options.nodes) {
    const ports = await bench.ports(nodes === 1 ? "spare" : "five");
    const contenders = bench.contenders(nodes, few).filter((id) => id !== "limit");
    bench.log(`renew, N = ${nodes}: ${count} leases, ${contenders.length} contenders`);
    await takeTurns(bench, {
      contenders,
      rounds,
      seriesOf: (contender) => bench.seriesOf("renew", String(count), nodes, contender),
      open: (contender) =>
        openWorkers(contender, 1, {
          ports,
          ttlMs,
          waitMs: 0,
          pollMs: undefined,
          renewEveryMs,
          countCommands: false,
        }),
      async turn(contender, [worker], round) {
        if (worker === undefined) throw new Error("no process");
        const series = bench.seriesOf("renew", String(count), nodes, contender);
        const prefix = `${contender}:renew`;
        /** @type {{ failures: Record<string, number> }} */
        const kept = await worker.ask("keep", { prefix, count }, 60_000);
        recordProblems(series, kept.failures);
        // Two intervals first, unless quick, because code that has hardly run is not compiled yet.
        const warmMs = bench.timeMs(2 * renewEveryMs, 0);
        await worker.ask("renewals", { durationMs: warmMs }, warmMs + 30_000);
        // Together longer than the TTL, so the leases that exist afterwards were renewed.
        const durationMs = Math.max(bench.timeMs(9_000, 3_000), renewEveryMs);
        /** @type {{ cpuUs: number }} */
        const { cpuUs } = await worker.ask("renewals", { durationMs }, durationMs + 30_000);
        const present = await Promise.all(ports.map((port) => countKeys(port, prefix)));
        // Number of leases that a majority of the nodes still has.
        const held = present.sort((a, b) => b - a)[ports.length >> 1] ?? 0;
        const renewals = count * (durationMs / renewedEveryMs(contender));
        record(series, round, { cpuUs: cpuUs / renewals, lost: count - held });
        if (held < count) recordProblems(series, { "leases lost": count - held });
        /** @type {{ failures: Record<string, number> }} */
        const dropped = await worker.ask("drop", undefined, 60_000);
        recordProblems(series, dropped.failures);
        const left = await keysLeft(ports, prefix);
        if (left > 0) recordProblems(series, { "keys left behind": left });
      },
    });
  }
  bench.note(
    `renew: TTL ${ttlMs} ms, renewed every ${renewEveryMs} ms; redlock-universal renews when a ` +
      "fifth of the TTL is left and has no option for it; redlock 4 and verrou do not renew, " +
      "so a timer of the benchmark calls their extend",
  );
}
