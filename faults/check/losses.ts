import type { History } from "../history.ts";

/** A loss that the library reported to the holder. */
export interface Loss {
  readonly lease: string;
  readonly reason: string;
  /** Time of the report, relative to the end of validity; negative if it came before. */
  readonly lateMs: number | undefined;
  /**
   * True if the process was stopped at the end of validity: it got the report when it ran again.
   */
  readonly wasFrozen: boolean;
  /** Ticks in which the process ran its timers after the end and before the report. */
  readonly ticksLate: number;
}

/** Time that a process needs to run normally after it was stopped. */
const wakeMs = 100;

export function lossesOf(history: History): Loss[] {
  const freezes = freezesOf(history);
  return history.events.flatMap((event) => {
    if (event.what !== "reported") return [];
    const { t, lease, reason, untilMs, who, ticksLate = 0 } = event;
    const wasFrozen = freezes.some(
      (freeze) =>
        freeze.who === who.split(".")[0] &&
        freeze.fromMs <= t &&
        freeze.toMs + wakeMs >= Math.min(t, untilMs ?? t),
    );
    const lateMs = untilMs === undefined ? undefined : t - untilMs;
    return [{ lease, reason, lateMs, wasFrozen, ticksLate }];
  });
}

/**
 * Returns the leases whose loss was reported late or never, though their process ran its timers.
 * One tick says nothing: it may come first of all timers that are due when a process wakes up. At
 * the next one they have all run.
 */
export function lateReports({ events }: History): string[] {
  return events.flatMap((event) => {
    if (event.what !== "reported" && event.what !== "release") return [];
    const { lease, ticksLate = 0 } = event;
    return ticksLate < 2 ? [] : [`${lease} was over for ${ticksLate} ticks without a report`];
  });
}

/** Returns the looks that found the lease trusted after the end that the library reported. */
export function flatteries(history: History): string[] {
  return history.events.flatMap((event) => {
    if (event.what !== "look" || !event.trusted || event.untilMs === undefined) return [];
    return event.t > event.untilMs ? [`${event.lease} was still trusted after its end`] : [];
  });
}

function freezesOf({ faults, endMs }: History): {
  readonly who: string;
  readonly fromMs: number;
  readonly toMs: number;
}[] {
  const ends = new Map<number, number>();
  for (const { id, phase, t } of faults) if (phase === "end") ends.set(id, t);
  return faults.flatMap(({ kind, phase, id, t, clients }) => {
    const [client] = clients;
    if (kind !== "freeze-client" || phase !== "begin" || client === undefined) return [];
    return [{ who: `c${client + 1}`, fromMs: t, toMs: ends.get(id) ?? endMs }];
  });
}
