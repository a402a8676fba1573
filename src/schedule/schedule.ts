import { InvalidOptionError } from "../core/errors.ts";
import type { Locks } from "../core/locks.ts";
import { partsOf } from "../core/manager-parts.ts";
import { knownOptions, type LockOptions } from "../core/options.ts";
import { durationMs, type Duration } from "../core/time/durations.ts";
import { ledgerFor, type Ledger } from "./ledger.ts";
import { triesMax } from "./plan.ts";
import { RunningSchedule } from "./running-schedule.ts";
import type { RunWork, Schedule } from "./schedule-call.ts";
import { cronTicks, everyTicks, type NextRun, type Ticks } from "./ticks.ts";

interface ScheduleSettings extends Pick<LockOptions, "ttl" | "renew" | "maxHold" | "label"> {
  /**
   * Ticks that came while no process ran: `"latest"` runs the latest of them, `"all"` each of them
   * (at most 100), `"skip"` only one that is less than `grace` old.
   * @default "latest"
   */
  readonly missed?: "latest" | "all" | "skip";
  /** Ticks that come during a run: passed over, or run after it. @default "skip" */
  readonly overlap?: "skip" | "after";
  /**
   * How often a tick is begun, if its work fails or its process dies. With 1 it is begun at most
   * once.
   * @default 1
   */
  readonly tries?: number;
  /** Age from which `missed: "skip"` skips a tick. @default "1m" */
  readonly grace?: Duration;
  /** Age from which a tick is only reported as missed. @default "1h" */
  readonly within?: Duration;
  /** Runs at once if no tick was ever begun. Else the next tick is the first. @default false */
  readonly immediately?: boolean;
  /** Keeps which tick was begun last. @default the marks of the store */
  readonly ledger?: Ledger;
  /** Stops the schedule when it aborts, as `stop()` does. */
  readonly signal?: AbortSignal;
}

export type ScheduleOptions = ScheduleSettings &
  (
    | {
        /** Time between two ticks. They are multiples of it since 1970, plus `offset`. */
        readonly every: Duration;
        /** @default 0 */
        readonly offset?: Duration;
      }
    | {
        /** Times of a cron library, such as `new Cron("0 3 * * *")` of croner. */
        readonly at: NextRun;
      }
  );

const dayMs = 86_400_000;
const lockNames = ["ttl", "renew", "maxHold", "label"];
const ownNames = ["every", "offset", "at", "missed", "overlap", "tries", "grace", "within"];
const moreNames = ["immediately", "ledger", "signal"];

/**
 * Runs `work` at each tick, in one of the processes that call this with the same name. A tick is
 * begun at most `tries` times, whatever clocks and leases do: a number that only grows says which
 * tick was begun, and it is raised under the fence of a lease.
 *
 * Returns at once. A tick whose process dies is lost with `tries: 1`, and reported by
 * `tick-missed`. Throws InvalidOptionError for wrong arguments, and UnsupportedError if the store
 * keeps no marks and there is no `ledger`.
 */
export function schedule(
  locks: Locks,
  name: string,
  options: ScheduleOptions,
  work: RunWork,
): Schedule {
  if (typeof name !== "string") throw new InvalidOptionError("name", "one name", name);
  if (typeof work !== "function") {
    throw new InvalidOptionError("work", "a function that takes the run", work);
  }
  knownOptions("options", options, [...ownNames, ...moreNames, ...lockNames]);
  const parts = partsOf(locks);
  const { ttl, renew, maxHold, label, signal } = options;
  const given = { ttl, renew: renew ?? true, maxHold, label };
  const lock = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as LockOptions;
  parts.check(name, signal === undefined ? lock : { ...lock, signal });
  const { missed = "latest", overlap = "skip", tries = 1, immediately = false } = options;
  oneOf("missed", missed, ["latest", "all", "skip"]);
  oneOf("overlap", overlap, ["skip", "after"]);
  if (!Number.isSafeInteger(tries) || tries < 1 || tries > triesMax) {
    throw new InvalidOptionError("tries", `a whole number from 1 to ${triesMax}`, tries);
  }
  if (typeof immediately !== "boolean") {
    throw new InvalidOptionError("immediately", "true or false", immediately);
  }
  const graceMs = durationMs("grace", options.grace ?? 60_000, { minMs: 1, maxMs: 30 * dayMs });
  const withinMs = durationMs("within", options.within ?? 3_600_000, {
    minMs: 1,
    maxMs: 30 * dayMs,
  });
  const ledger = ledgerFor(locks, name, options.ledger);
  const policy = { missed, overlap, tries, graceMs, withinMs, immediately };
  const ticks = ticksOf(options);
  return new RunningSchedule({ locks, parts, name, lock, ticks, ledger, policy, signal, work });
}

function ticksOf(options: ScheduleOptions): Ticks {
  if ("at" in options) {
    if ("every" in options || "offset" in options) {
      throw new InvalidOptionError("at", "given without `every` and `offset`", options.at);
    }
    if (typeof options.at?.nextRun !== "function") {
      const expected = "an object with nextRun(after), such as a Cron of croner";
      throw new InvalidOptionError("at", expected, options.at);
    }
    return cronTicks(options.at);
  }
  const everyMs = durationMs("every", options.every, { minMs: 10, maxMs: 366 * dayMs });
  const bounds = { minMs: 0, maxMs: everyMs - 1 };
  return everyTicks(everyMs, durationMs("offset", options.offset ?? 0, bounds));
}

function oneOf(option: string, value: unknown, known: readonly string[]): void {
  if (typeof value === "string" && known.includes(value)) return;
  throw new InvalidOptionError(option, `one of ${known.join(", ")}`, value);
}
