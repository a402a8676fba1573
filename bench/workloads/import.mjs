// @ts-check
/** Time that a fresh process needs to load a library, without a client. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { record, takeTurns } from "../bench.mjs";
import { addressOf } from "../contenders/holdfast.mjs";

/** @import { Bench } from "../bench.mjs" */

const script = fileURLToPath(new URL("../import-time.mjs", import.meta.url));

/**
 * Modules that a program imports to lock on Redis. @type {Readonly<Record<string, readonly
 * string[]>>}
 */
const imports = {
  fenced: [addressOf("index.js"), addressOf("stores/redis/index.js")],
  redlock4: ["redlock4"],
  redlock5: ["redlock5"],
  "redis-semaphore": ["redis-semaphore"],
  "redlock-universal": ["redlock-universal"],
  verrou: ["@verrou/core", "@verrou/core/drivers/redis"],
};

/** @param {Bench} bench */
export async function coldImport(bench) {
  const { quick, scale } = bench.options;
  const contenders = bench.contenders(1, Object.keys(imports));
  // Many short processes, so that a delayed one does not count.
  const rounds = scale < 1 ? 3 : quick ? 11 : 51;
  bench.log(`import: ${rounds} processes each, ${contenders.length} contenders`);
  const seriesOf = (/** @type {string} */ contender) =>
    bench.seriesOf("import", "fresh process", 1, contender);
  await takeTurns(bench, {
    contenders,
    rounds,
    seriesOf,
    open: async () => [],
    async turn(contender, _workers, round) {
      const args = [script, ...(imports[contender] ?? [])];
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 });
      record(seriesOf(contender), round, { importMs: Number(stdout) });
    },
  });
  bench.note(
    "import: `holdfast` and `holdfast/redis`, and what the documentation of each peer imports for " +
      "Redis; no client, which all of them need besides",
  );
}
