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
  /** True if it did something else after the end, well before the report: the report was late. */
  readonly ranMeanwhile: boolean;
}

/** Time that the first turn of a process may take after it wakes up on a busy machine. */
const turnMs = 50;

/** Time that a process needs to run normally after it was stopped. */
const wakeMs = 100;

export function lossesOf(history: History): Loss[] {
  const freezes = freezesOf(history);
  return history.events.flatMap((event) => {
    if (event.what !== "told") return [];
    const { t, lease, reason, untilMs, who } = event;
    const wasFrozen = freezes.some(
      (freeze) =>
        freeze.who === who.split(".")[0] &&
        freeze.fromMs <= t &&
        freeze.toMs + wakeMs >= Math.min(t, untilMs ?? t),
    );
    const lateMs = untilMs === undefined ? undefined : t - untilMs;
    const ranMeanwhile = history.events.some(
      (other) =>
        other.who === who &&
        other.t > (untilMs ?? t) &&
        other.t < t - turnMs &&
        !("lease" in other && other.lease === lease),
    );
    return [{ lease, reason, lateMs, wasFrozen, ranMeanwhile }];
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
