// @ts-check
/** One process of one contender. It runs tasks on request over IPC, several at a time. */

import { kindOf } from "./contenders/list.mjs";
import { contend } from "./tasks/contend.mjs";
import { dismissCrowd, gatherCrowd } from "./tasks/crowd.mjs";
import { runCycles } from "./tasks/cycles.mjs";
import { dropAll, keepMany, measureHeap, watchRenewals } from "./tasks/kept.mjs";
import { dropTurn, freeTurn, grabTurn, holdTurn, waitForTurn } from "./tasks/turns.mjs";

/** @import { Contender, Reply, Request, Settings } from "./types.ts" */

/** @type {Contender | undefined} */
let contender;
const kind = kindOf(process.argv[2] ?? "");

/** @returns {Contender} */
function current() {
  if (contender === undefined) throw new Error("not open");
  return contender;
}

/** @type {Readonly<Record<string, (input: never) => Promise<unknown>>>} */
const tasks = {
  async open(/** @type {Settings} */ settings) {
    await contender?.close();
    contender = await kind.open(settings);
    return undefined;
  },
  async close() {
    await contender?.close();
    contender = undefined;
  },
  cycles: (/** @type {Parameters<typeof runCycles>[1]} */ input) => runCycles(current(), input),
  contend: (/** @type {Parameters<typeof contend>[1]} */ input) => contend(current(), input),
  keep: (/** @type {Parameters<typeof keepMany>[1]} */ input) => keepMany(current(), input),
  drop: () => dropAll(current()),
  heap: () => measureHeap(),
  renewals: (/** @type {{ durationMs: number }} */ input) => watchRenewals(input),
  gather: (/** @type {Parameters<typeof gatherCrowd>[1]} */ input) => gatherCrowd(current(), input),
  dismiss: (/** @type {Parameters<typeof dismissCrowd>[0]} */ input) => dismissCrowd(input),
  grab: (/** @type {string} */ resource) => grabTurn(current(), resource),
  free: () => freeTurn(current()),
  hold: (/** @type {string} */ resource) => holdTurn(current(), resource),
  letGo: () => dropTurn(current()),
  wait: (/** @type {string} */ resource) => waitForTurn(current(), resource),
};

/** @param {Reply} reply */
function answer(reply) {
  // If the parent is gone, this process ends as well.
  if (process.connected) process.send?.(reply);
}

process.on("message", (message) => {
  const { id, task, input } = /** @type {Request} */ (message);
  const run = tasks[task];
  const done =
    run === undefined ? Promise.reject(new Error(task)) : run(/** @type {never} */ (input));
  done.then(
    (result) => answer({ id, result }),
    (error) => answer({ id, error: error instanceof Error ? (error.stack ?? "") : String(error) }),
  );
});
process.once("disconnect", () => process.exit(0));
// A library that forgets a promise must not end the measurement.
let rejections = 0;
process.on("unhandledRejection", (reason) => {
  rejections += 1;
  if (rejections === 1) process.stderr.write(`${kind.id}: unhandled ${String(reason)}\n`);
});
process.send?.({ id: 0, result: "ready" });
