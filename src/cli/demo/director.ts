import { setTimeout as sleep } from "node:timers/promises";
import type { Crew } from "./crew.ts";
import type { DemoEvent } from "./events.ts";
import type { Record } from "./record.ts";

/** Limit for each step that does not wait for a lease to run out. */
const limitMs = 15_000;
/** Limit for the start; processes start slowly on a busy machine. */
const startLimitMs = 60_000;
/** Limit for the first turn, which may have to wait until fresh servers may vote. */
const firstTurnLimitMs = 60_000;
const freezesMax = 3;
const killAfterMs = 200;

const turns = { atFirst: 5, afterTheKill: 2, whileFrozen: 1, atLast: 2 };

export interface DirectorOptions {
  readonly crew: Crew;
  readonly record: Record;
  readonly names: readonly string[];
  readonly ttlMs: number;
  readonly signal: AbortSignal;
  /** Called when a new scene begins. */
  readonly onScene: (title: string) => void;
}

/**
 * Runs the scenes of the demo: sends each signal at the worst possible moment. The results are
 * events in the record.
 */
export async function direct(options: DirectorOptions): Promise<void> {
  const { crew, record, names, signal, onScene } = options;
  onScene(`${names.length} workers start`);
  await allReady(options);
  onScene("they take turns");
  crew.begin();
  await completed(options, turns.atFirst, firstTurnLimitMs);

  onScene("kill -9 while it holds the lock");
  const thinking = (event: DemoEvent): boolean => event.kind === "thinking";
  const victim = await record.next("a worker in the middle of a turn", thinking, {
    limitMs,
    signal,
  });
  // The kill comes in the middle of the turn, so that the picture shows the holder of the lock.
  await sleep(killAfterMs, undefined, { signal });
  await crew.kill(victim.worker);
  await takenOver(options, victim.worker);
  await completed(options, turns.afterTheKill);

  onScene("a worker is frozen past its lease, just before it writes");
  const sleeper = await freezeBeforeItsWrite(options);
  await completed(options, turns.whileFrozen);
  // The frozen worker is resumed before the next worker reads, so that its late write undoes the
  // finished deposits.
  const written = (event: DemoEvent): boolean =>
    event.kind === "replied" && event.account === "guarded" && event.worker !== sleeper;
  await record.next("another turn's last write", written, { limitMs, signal });

  onScene("it wakes up and writes");
  crew.resume(sleeper);
  const lossReported = (event: DemoEvent): boolean =>
    event.worker === sleeper && event.kind === "lost";
  await record.next(`${sleeper} to learn that its lease is lost`, lossReported, {
    limitMs,
    signal,
  });
  await completed(options, turns.atLast);
  onScene("everybody finishes");
  await crew.stop();
}

async function allReady({ record, names, signal }: DirectorOptions): Promise<void> {
  const ready = (): number => record.events.filter(({ kind }) => kind === "ready").length;
  const all = (): boolean => ready() === names.length;
  if (!all()) await record.next("the workers to be ready", all, { limitMs: startLimitMs, signal });
}

/**
 * Freezes a worker that is about to write. Resolves to the name of this worker when another worker
 * holds the lock.
 */
async function freezeBeforeItsWrite(options: DirectorOptions): Promise<string> {
  const { crew, record, signal } = options;
  const checked = (event: DemoEvent): boolean => event.kind === "checked";
  for (let freeze = 1; freeze <= freezesMax; freeze += 1) {
    const { worker } = await record.next("a worker about to write", checked, { limitMs, signal });
    const from = record.events.length;
    crew.freeze(worker);
    await takenOver(options, worker);
    // If the worker sent its write before the signal arrived, it is resumed and another freeze
    // follows.
    const wrote = record.events
      .slice(from)
      .some((event) => event.kind === "write" && event.worker === worker);
    if (!wrote) return worker;
    crew.resume(worker);
  }
  throw new Error("no worker could be frozen just before its write: is this machine very busy?");
}

async function takenOver({ record, ttlMs, signal }: DirectorOptions, from: string): Promise<void> {
  const byAnother = (event: DemoEvent): boolean =>
    event.kind === "acquired" && event.worker !== from;
  const limits = { limitMs: ttlMs + limitMs, signal };
  await record.next(`another worker to take over from ${from}`, byAnother, limits);
}

async function completed(
  { record, signal }: DirectorOptions,
  count: number,
  firstLimitMs = limitMs,
): Promise<void> {
  for (let turn = 1; turn <= count; turn += 1) {
    const released = (event: DemoEvent): boolean => event.kind === "released";
    const limits = { limitMs: turn === 1 ? firstLimitMs : limitMs, signal };
    await record.next("a turn to be completed", released, limits);
  }
}
