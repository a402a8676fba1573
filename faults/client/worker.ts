import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "../../src/core/errors.ts";
import type { SeededRandom } from "../../src/testing/seeded-random.ts";
import type { ToJournal, WriteEvent } from "../history.ts";
import type { BenchLock } from "../locks/bench-lock.ts";
import { nowMs } from "../monotonic.ts";
import type { AwakeTime } from "./awake.ts";
import type { Journal } from "./journal.ts";
import type { Content, CounterRegister } from "./registers.ts";
import { WatchedLease } from "./watched-lease.ts";

export interface WorkerTools {
  readonly who: string;
  readonly journal: Journal;
  readonly lock: BenchLock;
  readonly plain: readonly CounterRegister[];
  readonly fenced: readonly CounterRegister[];
  readonly random: SeededRandom;
  readonly awake: AwakeTime;
  readonly resources: readonly string[];
  readonly waitMs: number;
  readonly ttlMs: number;
  readonly stopping: AbortSignal;
}

/**
 * Beyond these limits, awake, a call is overdue: by its own bounds it should have settled long
 * before.
 */
const acquireSlackMs = 3_000;
const releaseMsMax = 5_000;
const lookEveryMs = 15;

/** Acquires a lock, updates what it protects, and releases it, again and again. */
export async function work(tools: WorkerTools, worker: number): Promise<void> {
  for (let turn = 1; !tools.stopping.aborted; turn += 1) {
    const { resources, random } = tools;
    const resource = resources[Math.floor(random.fraction() * resources.length)] ?? "";
    await oneTurn(tools, { lease: `${tools.who}/${worker}/${turn}`, resource });
  }
}

async function oneTurn(
  tools: WorkerTools,
  about: { readonly lease: string; readonly resource: string },
): Promise<void> {
  const { journal, lock, awake, waitMs, random } = tools;
  const overdue = (call: string) => (awakeMs: number) => {
    journal.add({ what: "overdue", ...about, call, awakeMs });
  };
  journal.add({ what: "call", ...about });
  const acquiring = lock.acquire(about.resource);
  const acquired = await awake.bound(acquiring, waitMs + acquireSlackMs, overdue("acquire"));
  if (acquired.kind === "refused") {
    journal.add({ what: "refused", ...about, why: acquired.why });
    await sleep(20 + random.fraction() * 80);
    return;
  }
  const watched = new WatchedLease(journal, about, acquired.lease, awake);
  try {
    await section(tools, watched);
  } finally {
    watched.end();
    const releasing = acquired.lease.release();
    const outcome = await awake.bound(releasing, releaseMsMax, overdue("release"));
    const { releasedBy } = acquired.lease;
    const by = releasedBy === undefined ? {} : { by: releasedBy };
    journal.add({ what: "released", ...about, outcome, ...by });
  }
}

/** Reads every register, waits, and writes them all back. */
async function section(tools: WorkerTools, watched: WatchedLease): Promise<void> {
  const { random, plain, fenced, journal } = tools;
  const careful = random.fraction() < 0.5;
  const registers = watched.lease.fenced === undefined ? plain : [...plain, ...fenced];
  const reads = await Promise.all(
    registers.map((register, index) => readOne(watched, register, index, careful, journal)),
  );
  const ms = thinkMs(tools);
  // Without looks, only the signal can report a loss in time.
  const looks = careful || random.fraction() < 0.5;
  const pause = (): Promise<unknown> =>
    looks ? think(tools, watched, ms / 2, careful) : sleep(ms / 2);
  await pause();
  await question(tools, watched);
  await pause();
  if (careful && !watched.look()) {
    journal.add({ what: "gave-up", ...watched.about });
    return;
  }
  const open = reads.filter((read) => read !== undefined);
  await Promise.all(open.map((read) => writeOne(watched, read, careful, journal)));
}

/** Sometimes extends or proves the lease. */
async function question(
  { random, awake, journal }: WorkerTools,
  watched: WatchedLease,
): Promise<void> {
  const chance = random.fraction();
  if (chance >= 0.2) return;
  const { about, lease } = watched;
  const what = chance < 0.1 ? "extend" : "prove";
  const startedMs = nowMs();
  const asking = lease[what]?.();
  if (asking === undefined) return;
  const outcome = await awake.bound(asking, releaseMsMax, (awakeMs) => {
    journal.add({ what: "overdue", ...about, call: what, awakeMs });
  });
  journal.add({ what, ...about, outcome, startedMs });
}

interface Read {
  readonly register: CounterRegister;
  readonly content: Content;
  readonly op: string;
}

async function readOne(
  watched: WatchedLease,
  register: CounterRegister,
  index: number,
  careful: boolean,
  journal: Journal,
): Promise<Read | undefined> {
  const op = `${watched.about.lease}/${index}`;
  const fenced = register.name.endsWith("fenced") ? watched.lease.fenced : undefined;
  const about = { what: "read", ...watched.about, register: register.name, op } as const;
  if (fenced !== undefined) journal.add({ ...about, phase: "call" });
  try {
    const content = await register.read(watched.about.resource, fenced);
    if (fenced !== undefined) journal.add({ ...about, phase: "done", value: content.op });
    return { register, content, op };
  } catch (error) {
    if (!isHoldfastError(error, "FENCE_REJECTED")) throw error;
    journal.add(writeEvent(watched, register, op, careful, "refused-claim"));
    return undefined;
  }
}

async function writeOne(
  watched: WatchedLease,
  { register, content, op }: Read,
  careful: boolean,
  journal: Journal,
): Promise<void> {
  const fenced = register.name.endsWith("fenced") ? watched.lease.fenced : undefined;
  journal.add(writeEvent(watched, register, op, careful, "call"));
  try {
    await register.write(watched.about.resource, fenced, content, op);
    journal.add(writeEvent(watched, register, op, careful, "accepted"));
  } catch (error) {
    const refused = isHoldfastError(error, "FENCE_REJECTED");
    journal.add(writeEvent(watched, register, op, careful, refused ? "refused" : "failed"));
    if (!refused) throw error;
  }
}

function writeEvent(
  watched: WatchedLease,
  register: CounterRegister,
  op: string,
  careful: boolean,
  phase: WriteEvent["phase"],
): ToJournal {
  return { what: "write", ...watched.about, register: register.name, op, careful, phase };
}

/** Mostly short, sometimes longer than the TTL, so that renewals and losses occur. */
function thinkMs({ random, ttlMs }: WorkerTools): number {
  const kind = random.fraction();
  if (kind < 0.78) return 5 + random.fraction() * 55;
  return kind < 0.95 ? 100 + random.fraction() * 500 : ttlMs * (0.5 + random.fraction() * 1.5);
}

/** Checks the lease again and again; a careful holder stops when it is lost. */
async function think(
  { stopping }: WorkerTools,
  watched: WatchedLease,
  ms: number,
  careful: boolean,
): Promise<void> {
  const untilMs = nowMs() + ms;
  while (nowMs() < untilMs && !stopping.aborted) {
    await sleep(Math.min(lookEveryMs, Math.max(1, untilMs - nowMs())));
    if (!watched.look() && careful) return;
  }
}
