import { appendFileSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { appliedInPostgres, appliedInRedis } from "./applied-writes.ts";
import { drawClockOffsets } from "./clock-offsets.ts";
import { compileClockLibrary } from "./clock-library.ts";
import { codeHash } from "./code-hash.ts";
import type { FaultEvent } from "./history.ts";
import type { RunRecord } from "./kept-run.ts";
import { nowMs } from "./monotonic.ts";
import { torment } from "./nemesis.ts";
import { isHoldfast, type Options } from "./options.ts";
import { drawPlan } from "./plan.ts";
import { resourcesOf, World } from "./world.ts";

/** Time after the last fault in which everything is healed, and must work. */
const healthyMs = 6_000;
/** Time for clients to connect to all nodes before the first fault. */
const settleMs = 1_500;

/**
 * Injects faults into servers, links and clients for a while, and leaves the histories in
 * `journals`.
 */
export async function run(
  options: Options,
  version: string,
  root: string,
  folder: string,
  journals: string,
): Promise<void> {
  mkdirSync(journals, { recursive: true });
  const clockLibrary = compileClockLibrary(root, folder);
  const clockSteps = clockLibrary !== undefined;
  const plan = drawPlan({ ...options, durationMs: options.seconds * 1_000, clockSteps });
  const { seed } = options;
  const hasOffsets = clockSteps && options.offsets === "drawn";
  const clockOffsetsMs = hasOffsets ? drawClockOffsets(seed, options.clients) : [];
  const paths = { root, folder, journals };
  const world = await World.open({ ...options, ...paths, clockLibrary, clockOffsetsMs });
  try {
    const { nodes, clients, links } = world;
    const record = (event: FaultEvent): void => addLine(join(journals, "faults.jsonl"), event);
    const startMs = nowMs();
    for (const client of clients) client.launch();
    await sleep(settleMs);
    await torment({ nodes, clients, links, record }, plan);
    const healedMs = nowMs();
    await sleep(healthyMs);
    await Promise.all(clients.map((client) => client.stop()));
    const endMs = nowMs();
    const applied = await appliedInPostgres(world.pool);
    for (const write of [...applied, ...appliedInRedis(world.registerFiles)]) {
      const { fence, fenceBefore } = write;
      const fences =
        fence === undefined ? {} : { fence: `${fence}`, fenceBefore: `${fenceBefore ?? 0n}` };
      addLine(join(journals, "applied.jsonl"), { ...write, ...fences });
    }
    const misbehaved = clients.flatMap((client) => client.misbehaved);
    const about: RunRecord = {
      options,
      version,
      ...(isHoldfast(options.lock) ? { code: codeHash(root) } : {}),
      clockSteps,
      clockOffsetsMs,
      startMs,
      healedMs,
      endMs,
      resources: resourcesOf(options.resources),
      misbehaved,
      journals: clients.flatMap((client) => client.journals.map((path) => basename(path))),
    };
    addLine(join(journals, "run.json"), about);
  } finally {
    await world.close();
  }
}

function addLine(path: string, value: object): void {
  appendFileSync(path, `${JSON.stringify(value)}\n`);
}
